package index

import (
	"fmt"
	"slices"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// mapped is the value of a label in the labels MAP of a row.
type mapped struct {
	row   int
	value string
}

// mapped returns the entries of the labels MAP by name, ascending by row.
func (l *loader) mapped() (map[string][]mapped, error) {
	key := l.layout.Column(parquetfile.MapPath(segment.ColLabels, "key")...)
	value := l.layout.Column(parquetfile.MapPath(segment.ColLabels, "value")...)
	if key < 0 && value < 0 {
		return nil, nil
	}
	if key < 0 || value < 0 {
		return nil, fmt.Errorf("%w: %w: keys or values are missing", parquetfile.ErrFormat, errShape)
	}
	names, counts, err := l.strings(key)
	if err != nil {
		return nil, err
	}
	values, valueCounts, err := l.strings(value)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(counts, valueCounts) {
		return nil, fmt.Errorf("%w: %w: keys and values are not aligned", parquetfile.ErrFormat, errShape)
	}
	byName, at := map[string][]mapped{}, 0
	for row, n := range counts {
		for ; n > 0; n-- {
			byName[names[at]] = append(byName[names[at]], mapped{row, values[at]})
			at++
		}
	}
	return byName, nil
}

// spread fills a column of so many rows with the entries of one name, which ascend by row.
func (b *builder) spread(name string, entries []mapped, rows int) error {
	for i, e := range entries {
		if i > 0 && entries[i-1].row == e.row {
			return fmt.Errorf("%w: label %q occurs twice in a row", parquetfile.ErrFormat, name)
		}
		b.fill(e.row)
		b.values = append(b.values, e.value)
		b.add(len(b.values)-1, 1)
	}
	b.fill(rows)
	return nil
}

// strings reads a list column of strings in all row groups. counts holds the length of each row's
// list. The strings own their memory.
func (l *loader) strings(leaf int) (out []string, counts []int, err error) {
	err = l.pages(leaf, nil, func(p *parquetfile.DataPage) (err error) {
		if room := l.rows - len(counts) + len(p.Values)/4; p.Entries > room {
			return fmt.Errorf("%w: page claims %d entries, has room for %d", parquetfile.ErrFormat, p.Entries, room)
		}
		var n int
		if counts, n, err = p.Lists(counts); err != nil {
			return err
		}
		p.Values = slices.Clone(p.Values)
		out, err = p.Strings(out, n)
		return err
	})
	if err == nil && len(counts) != l.rows {
		err = fmt.Errorf("%w: %w: %d lists for %d series", parquetfile.ErrFormat, errShape, len(counts), l.rows)
	}
	return out, counts, err
}
