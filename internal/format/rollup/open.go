package rollup

import (
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Columns has the positions of a rollup's columns. It is immutable; the file is opened for each
// read of them.
type Columns struct {
	Step   int64 // width of the buckets, ms
	layout *parquetfile.Layout
}

// OpenColumns reads the footer of a rollup of size bytes and its column series_id. It calls visit
// with each series and its number of rows. A series whose rows lie in several row groups may be
// visited several times in succession. A file that claims more than maxRows rows is refused.
// Errors: ErrFormat, and those of in and visit.
func OpenColumns(in io.ReaderAt, size, maxRows int64, visit func(seriesID uint64, rows int) error) (*Columns, error) {
	l, err := parquetfile.ReadLayout(in, size)
	if err != nil {
		return nil, asFormat(err)
	}
	v, ok := l.KeyValues[VersionKey]
	if !ok {
		return nil, fmt.Errorf("%w: there is no %s", ErrFormat, VersionKey)
	}
	if err := checksum.CheckVersion("rollups", v, Version); err != nil {
		return nil, err
	}
	step, err := strconv.ParseInt(l.KeyValues[StepKey], 10, 64)
	if err != nil || step <= 0 {
		return nil, fmt.Errorf("%w: %s is %q", ErrFormat, StepKey, l.KeyValues[StepKey])
	}
	if l.Rows > maxRows {
		return nil, fmt.Errorf("%w: it has %d rows, its series have %d buckets at most", ErrFormat, l.Rows, maxRows)
	}
	r := newColumnReader(in, l)
	defer r.release()
	for g := range l.Groups {
		ids, err := r.int64s(g, "series_id")
		if err != nil {
			return nil, err
		}
		for len(ids) > 0 {
			n := 1
			for n < len(ids) && ids[n] == ids[0] {
				n++
			}
			if err := visit(uint64(ids[0]), n); err != nil {
				return nil, err
			}
			ids = ids[n:]
		}
	}
	return &Columns{Step: step, layout: l}, nil
}

func asFormat(err error) error { return parquetfile.AsFormat(ErrFormat, err) }

// Groups returns the number of row groups.
func (c *Columns) Groups() int { return len(c.layout.Groups) }

// Rows returns the number of rows of a row group.
func (c *Columns) Rows(group int) int64 { return c.layout.Groups[group].Rows }

// Bytes returns about how much memory c takes.
func (c *Columns) Bytes() int64 { return int64(512 + len(c.layout.Groups)*len(c.layout.Leaves)*96) }

// columnReader reads flat columns of row groups. The values that it returns are valid until it reads
// the next column of their type.
type columnReader struct {
	in     io.ReaderAt
	layout *parquetfile.Layout
	buf    []byte
	chunk  parquetfile.ChunkReader

	integers []int64
	last     []int64 // the integers of Last
	floats   []float64
	rows     []Row // of StandIns
}

// readers are columnReaders whose memory later reads use again.
var readers = sync.Pool{New: func() any { return new(columnReader) }}

// newColumnReader returns a reader of a file. The caller gives it back with release.
func newColumnReader(in io.ReaderAt, l *parquetfile.Layout) *columnReader {
	r := readers.Get().(*columnReader)
	r.in, r.layout = in, l
	return r
}

func (r *columnReader) release() {
	r.in, r.layout = nil, nil
	readers.Put(r)
}

// column reads the row group's bytes of a column, and its values with read into dst's memory.
func column[T any](r *columnReader, group int, name string, dst *[]T, read func(g *parquetfile.GroupReader, leaf int, c *parquetfile.ChunkReader, dst []T) ([]T, error)) ([]T, error) {
	leaf := r.layout.Column(name)
	if leaf < 0 {
		return nil, fmt.Errorf("%w: there is no column %s", ErrFormat, name)
	}
	g, err := r.layout.Read(group, r.in, r.buf, []int{leaf})
	r.buf = g.Buffer()
	var out []T
	if err == nil {
		out, err = read(&g, leaf, &r.chunk, (*dst)[:0])
	}
	if err != nil {
		return nil, asFormat(fmt.Errorf("read column %s: %w", name, err))
	}
	*dst = out
	return out, nil
}

func (r *columnReader) int64s(group int, name string) ([]int64, error) {
	return column(r, group, name, &r.integers, (*parquetfile.GroupReader).Int64s)
}

func (r *columnReader) doubles(group int, name string) ([]float64, error) {
	return column(r, group, name, &r.floats, (*parquetfile.GroupReader).Doubles)
}
