// Package segmenttest encodes segments from rows for tests, and decodes them with a Parquet reader
// that shares no code with the writer.
package segmenttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Rows decodes the rows of a segment, in the file's order. It fails if a row violates the format:
// lists that are not aligned, or a series_id that is not that of the labels.
func Rows(file []byte) ([]segment.Row, error) {
	outside.Lock()
	defer outside.Unlock()
	outside.files <- file
	a := <-outside.answers
	return a.rows, a.err
}

// outside decodes on a goroutine that belongs to no bubble of testing/synctest. parquet-go pools
// decoders that hold channels, and those of one bubble must not be used in another.
var outside = func() *decoding {
	d := &decoding{files: make(chan []byte), answers: make(chan answer)}
	go func() {
		for file := range d.files {
			rows, err := rowsOf(file)
			d.answers <- answer{rows, err}
		}
	}()
	return d
}()

type decoding struct {
	sync.Mutex
	files   chan []byte
	answers chan answer
}

type answer struct {
	rows []segment.Row
	err  error
}

func rowsOf(file []byte) ([]segment.Row, error) {
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	var out []segment.Row
	for _, g := range f.RowGroups() {
		if out, err = readGroup(out, g, f.Schema().Columns()); err != nil {
			return nil, fmt.Errorf("read segment: %w", err)
		}
	}
	return out, nil
}

func readGroup(out []segment.Row, g parquet.RowGroup, columns [][]string) (_ []segment.Row, err error) {
	rows := g.Rows()
	defer func() { err = errors.Join(err, rows.Close()) }()
	buf := make([]parquet.Row, 64)
	for {
		n, err := rows.ReadRows(buf)
		for _, r := range buf[:n] {
			row, err := decode(r, columns)
			if err != nil {
				return nil, err
			}
			out = append(out, row)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// cells are the values of a row by column; those of the MAP are under labels.key and labels.value.
type cells map[string][]parquet.Value

func decode(r parquet.Row, columns [][]string) (segment.Row, error) {
	c := cells{}
	for _, v := range r {
		path := columns[v.Column()]
		if len(path) > 1 && v.DefinitionLevel() == 0 {
			continue // an empty list
		}
		name := path[0]
		if name == segment.ColLabels {
			name += "." + path[2]
		}
		c[name] = append(c[name], v)
	}
	row := segment.Row{Labels: c.labels()}
	if id := c[segment.ColSeriesID][0].Uint64(); id != ID(row.Labels) {
		return row, fmt.Errorf("series_id %d of %s", id, row.Labels)
	}
	if len(c[segment.ColTS]) != len(c[segment.ColValue]) || c[segment.ColST] != nil && len(c[segment.ColST]) != len(c[segment.ColTS]) ||
		len(c[segment.ColHistTS]) != len(c[segment.ColHist]) || len(c[segment.ColExTS]) != len(c[segment.ColExValue]) || len(c[segment.ColExTS]) != len(c[segment.ColExLabels]) {
		return row, fmt.Errorf("lists of %s are not aligned", row.Labels)
	}
	for i, t := range c[segment.ColTS] {
		s := segment.Float{T: t.Int64(), V: c[segment.ColValue][i].Double()}
		if c[segment.ColST] != nil {
			s.ST = c[segment.ColST][i].Int64()
		}
		row.Floats = append(row.Floats, s)
	}
	for i, t := range c[segment.ColHistTS] {
		h, err := segment.DecodeHist(c[segment.ColHist][i].ByteArray())
		if err != nil {
			return row, err
		}
		if h.T != t.Int64() {
			return row, fmt.Errorf("histogram of %s at %d ms in its column is at %d ms in its message", row.Labels, t.Int64(), h.T)
		}
		row.Hists = append(row.Hists, h)
	}
	for i, t := range c[segment.ColExTS] {
		l, err := segment.DecodeExemplarLabels(c[segment.ColExLabels][i].ByteArray())
		if err != nil {
			return row, err
		}
		row.Exemplars = append(row.Exemplars, exemplar.Exemplar{Labels: l, Value: c[segment.ColExValue][i].Double(), Ts: t.Int64(), HasTs: true})
	}
	return row, nil
}

func (c cells) labels() labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	b.Set(model.MetricNameLabel, string(c[segment.ColMetric][0].ByteArray()))
	for name, vs := range c {
		if n, ok := strings.CutPrefix(name, segment.LabelPrefix); ok {
			b.Set(n, string(vs[0].ByteArray()))
		}
	}
	for i, k := range c["labels.key"] {
		b.Set(string(k.ByteArray()), string(c["labels.value"][i].ByteArray()))
	}
	return b.Labels()
}

// ID is series.IDOf of a label set, whose labels without a value do not count.
func ID(lset labels.Labels) uint64 {
	var all []series.Label
	lset.Range(func(l labels.Label) {
		if l.Value != "" {
			all = append(all, series.Label{Name: l.Name, Value: l.Value})
		}
	})
	id, _ := series.IDOf(all, nil)
	return id
}
