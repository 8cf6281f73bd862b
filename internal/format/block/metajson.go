package block

import (
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/jsontext"
)

// metaParser decodes meta.json in one pass. Most of the text are the numbers of row groups, for
// which encoding/json takes five times as long, and the first query of a process waits for it.
type metaParser struct {
	*jsontext.Parser
	chunks, pages int    // of the last row group: the next one mostly has as many
	last          string // name of a metric
}

// decode reads the whole text into m, which is empty.
func (p *metaParser) decode(m *Meta) error {
	err := p.Object(func(name string) (err error) {
		p.Peek()
		switch name {
		case "version":
			var n int64
			if n, err = p.Integer("a version"); err == nil {
				err = checksum.CheckVersion("blocks", strconv.FormatInt(n, 10), FormatVersion)
			}
			m.Version = int(n)
		case "level":
			err = p.text(&m.Level)
		case "window":
			err = p.text(&m.Window)
		case "rank":
			err = p.text(&m.Rank)
		case "deletes_through":
			err = p.text(&m.DeletesThrough)
		case "sources":
			m.Sources, err = list(p, 0, p.String)
		case "slice":
			err = p.Decode(&m.Slice)
		case "label_columns":
			m.LabelColumns, err = list(p, 0, p.String)
		case "map_names":
			m.MapNames, err = list(p, 0, p.String)
		case "files":
			m.Files, err = list(p, 0, p.file)
		case "has_st":
			err = p.Decode(&m.HasST)
		case "min_t":
			m.MinT, err = p.number()
		case "max_t":
			m.MaxT, err = p.number()
		case "series":
			m.Series, err = p.number()
		case "floats":
			m.Floats, err = p.number()
		case "histograms":
			m.Hists, err = p.number()
		case "exemplars":
			m.Exemplars, err = p.number()
		case "metadata":
			m.Metadata, err = p.number()
		default:
			err = p.Decode(new(any))
		}
		return at(name, err)
	})
	if err == nil {
		err = p.End()
	}
	if err == nil && m.Version == 0 {
		err = errors.New("it has no version")
	}
	return err
}

// at adds the name of the member that an error is about.
func at(name string, err error) error {
	if err == nil || errors.Is(err, checksum.ErrUnknownVersion) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (p *metaParser) number() (int64, error) { return p.Integer("an integer") }

// text reads a string into a value that has a text form.
func (p *metaParser) text(v encoding.TextUnmarshaler) error {
	s, err := p.String()
	if err != nil {
		return err
	}
	return v.UnmarshalText([]byte(s))
}

// list reads an array of about n elements, or null.
func list[T any](p *metaParser, n int, element func() (T, error)) ([]T, error) {
	if p.Peek() == 'n' {
		var none []T
		return none, p.Decode(&none)
	}
	out := make([]T, 0, n)
	err := p.Array(func() error {
		v, err := element()
		out = append(out, v)
		return err
	})
	return fitting(out), err
}

// fitting returns a list with little more memory than it needs: the guess of its length may have
// been too high, and decoded metas stay in memory.
func fitting[T any](s []T) []T {
	if 2*len(s) < cap(s) {
		return slices.Clone(s)
	}
	return s
}

func (p *metaParser) file() (f File, err error) {
	err = p.Object(func(name string) (err error) {
		p.Peek()
		switch name {
		case "name":
			f.Name, err = p.String()
		case "bytes":
			f.Bytes, err = p.number()
		case "rows":
			f.Rows, err = p.number()
		case "row_groups":
			f.RowGroups, err = list(p, 0, p.group)
		default:
			err = p.Decode(new(any))
		}
		return at(name, err)
	})
	return f, err
}

func (p *metaParser) group() (g RowGroup, err error) {
	err = p.Object(func(name string) (err error) {
		p.Peek()
		switch name {
		case "rows":
			g.Rows, err = p.number()
		case "first_row":
			g.FirstRow, err = p.number()
		case "first_metric":
			g.FirstMetric, err = p.metric()
		case "last_metric":
			g.LastMetric, err = p.metric()
		case "first_series":
			g.FirstSeries, err = p.number()
		case "last_series":
			g.LastSeries, err = p.number()
		case "min_t":
			g.MinT, err = p.number()
		case "max_t":
			g.MaxT, err = p.number()
		case "columns":
			g.Columns, err = pairs[Chunk](p, p.chunks)
			p.chunks = len(g.Columns)
		case "v_int_pages":
			g.Pages, err = pairs[Stretch](p, p.pages)
			p.pages = len(g.Pages)
		default:
			err = p.Decode(new(any))
		}
		return at(name, err)
	})
	return g, err
}

// metric reads a string that is mostly that of the last call.
func (p *metaParser) metric() (string, error) {
	s, err := p.Repeated(p.last)
	p.last = s
	return s, err
}

// pairs reads an array of about n arrays of two integers, or null.
func pairs[T ~[2]int64](p *metaParser, n int) ([]T, error) {
	out := make([]T, 0, n)
	if p.Pairs(func(a, b int64) { out = append(out, T{a, b}) }) {
		return fitting(out), nil
	}
	return list(p, n, func() (T, error) { v, err := p.pair(); return v, err })
}

// pair reads an array of two integers.
func (p *metaParser) pair() (v [2]int64, err error) {
	n := 0
	err = p.Array(func() (err error) {
		if n == len(v) {
			return p.Unexpected("the end of two integers")
		}
		v[n], err = p.number()
		n++
		return err
	})
	if err == nil && n < len(v) {
		err = fmt.Errorf("%d integers, where two are expected", n)
	}
	return v, err
}
