package capture

import (
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// builder turns scrapes, row by row, into columns.
type builder struct {
	times  []int64
	series []Series
	index  map[string]int // label set → position in series
	syms   *labels.SymbolTable
}

func newBuilder() *builder {
	return &builder{index: map[string]int{}, syms: labels.NewSymbolTable()}
}

// add appends one scrape. A series that misses a scrape falls behind and is dropped by finish.
func (b *builder) add(ts int64, text []byte) error {
	if n := len(b.times); n > 0 && ts <= b.times[n-1] {
		return fmt.Errorf("%w: scrape times do not ascend (%d after %d)", ErrFormat, ts, b.times[n-1])
	}
	row := len(b.times)
	b.times = append(b.times, ts)
	p := textparse.NewPromParser(text, b.syms, false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, v := p.Series()
		b.put(row, l.WithoutEmpty(), v)
	}
}

// put stores v as the value of series l in scrape row. Of two samples of a series in one scrape the
// first wins.
func (b *builder) put(row int, l labels.Labels, v float64) {
	k := l.String()
	i, known := b.index[k]
	if !known && row > 0 {
		b.index[k] = -1 // absent from the first scrape: never complete
		return
	}
	if !known {
		i = len(b.series)
		b.index[k] = i
		b.series = append(b.series, Series{Labels: l})
	}
	if i >= 0 && len(b.series[i].Values) == row {
		b.series[i].Values = append(b.series[i].Values, v)
	}
}

func (b *builder) finish() (*Capture, error) {
	c := &Capture{Times: b.times}
	for _, s := range b.series {
		if len(s.Values) == len(b.times) {
			c.Series = append(c.Series, s)
		}
	}
	c.Dropped = len(b.index) - len(c.Series)
	if len(c.Series) == 0 {
		return nil, fmt.Errorf("%w: no series is in all of its %d scrapes", ErrFormat, len(c.Times))
	}
	return c, nil
}
