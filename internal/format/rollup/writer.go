package rollup

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/parquetfile"
)

const (
	createdBy = "promlake rollup version 4" // of Version
	// groupRows is the number of rows at which a row group ends. It bounds a writer's memory: about
	// 25 MB for all its files.
	groupRows = 64 << 10
)

// ErrClosed reports a use of a Writer after its Close.
var ErrClosed = errors.New("rollup writer is closed")

// Writer writes the rollups of a block. It belongs to one goroutine. After an error its files are
// lost.
type Writer struct {
	outs   []*output // as Steps
	zstd   *zstd.Encoder
	from   *parquetfile.Encoders
	all    bool // tests: of every series
	closed bool
}

// squeeze is the compression level.
const squeeze = zstd.SpeedBetterCompression

// NewWriter returns a writer of all Steps through files. It takes its encoder from e, which may be
// nil; Close gives it back.
func NewWriter(files block.Files, e *parquetfile.Encoders) (*Writer, error) {
	z, err := e.Get(squeeze)
	if err != nil {
		return nil, err
	}
	w := &Writer{zstd: z, from: e}
	for _, s := range Steps() {
		w.outs = append(w.outs, &output{step: s, files: files, pq: parquetfile.NewWriter(z), groupRows: groupRows, cols: columns{trial: parquetfile.Trial{Encoder: z}}})
	}
	return w, nil
}

// Append adds the float samples of the next series in block order: ts ascending (ms), each once, v
// aligned with it, and st the start timestamps (ms, 0 = unknown) or nil. It gets all samples of a
// series in one call, and does not keep the slices. A file has no rows of the series that its Step
// does not keep.
func (w *Writer) Append(metric string, seriesID uint64, ts []int64, v []float64, st []int64) error {
	if w.closed {
		return ErrClosed
	}
	if len(v) != len(ts) || st != nil && len(st) != len(ts) {
		return fmt.Errorf("roll up %s %d: %d timestamps, %d values, %d start timestamps", metric, seriesID, len(ts), len(v), len(st))
	}
	for _, o := range w.outs {
		if n := len(ts); !w.all && (n == 0 || !o.step.Keeps(int64(n), ts[0], ts[n-1])) {
			continue
		}
		if err := o.append(metric, seriesID, ts, v, st); err != nil {
			return fmt.Errorf("write %s: %w", o.step.Name, err)
		}
	}
	return nil
}

// Close ends the files and returns them in the order of Steps. A rollup without rows has no file.
func (w *Writer) Close() ([]block.File, error) {
	if w.closed {
		return nil, ErrClosed
	}
	w.closed = true
	var files []block.File
	for _, o := range w.outs {
		if o.out == nil {
			continue
		}
		if err := o.close(); err != nil {
			return nil, fmt.Errorf("end %s: %w", o.step.Name, err)
		}
		files = append(files, block.File{Name: o.step.Name, Bytes: o.pq.Size(), Rows: o.rows})
	}
	w.from.Put(squeeze, w.zstd)
	return files, nil
}

// output is one file.
type output struct {
	step      Step
	files     block.Files
	pq        *parquetfile.Writer
	out       io.WriteCloser // nil before the first row
	groupRows int
	rows      int64 // in row groups written
	metrics   []string
	cols      columns
}

func (o *output) append(metric string, id uint64, ts []int64, v []float64, st []int64) error {
	if n := len(o.metrics); n == 0 || o.metrics[n-1] != metric {
		o.metrics = append(o.metrics, metric)
	}
	for len(ts) > 0 {
		row, n := o.step.first(ts)
		if st != nil {
			row.add(ts[:n], v[:n], st[:n])
			st = st[n:]
		} else {
			row.add(ts[:n], v[:n], nil)
		}
		ts, v = ts[n:], v[n:]
		if err := o.add(id, &row); err != nil {
			return err
		}
	}
	return nil
}

// add appends a row of the current metric.
func (o *output) add(id uint64, row *Row) error {
	if o.out == nil {
		out, err := o.files.Create(o.step.Name)
		if err != nil {
			return fmt.Errorf("create file: %w", err)
		}
		o.out = out
		o.cols.reset()
		if err := o.pq.Begin(out, schema(), createdBy, 0); err != nil {
			return err
		}
	}
	o.cols.metrics.Append(uint32(len(o.metrics)-1), o.metrics, 1)
	o.cols.add(id, row)
	if o.cols.rows < o.groupRows {
		return nil
	}
	return o.flush()
}

// flush writes the buffered rows as a row group.
func (o *output) flush() error {
	if o.cols.rows == 0 {
		return nil
	}
	if err := o.cols.write(o.pq); err != nil {
		return err
	}
	o.rows += int64(o.cols.rows)
	o.cols.reset()
	return nil
}

func (o *output) close() error {
	if err := o.flush(); err != nil {
		return err
	}
	err := o.pq.End([]format.KeyValue{
		{Key: VersionKey, Value: strconv.Itoa(Version)},
		{Key: StepKey, Value: strconv.FormatInt(o.step.Millis, 10)},
	})
	if err != nil {
		return err
	}
	if err := o.out.Close(); err != nil {
		return fmt.Errorf("close file: %w", err)
	}
	return nil
}

// shared writes the columns of a row group of which some are equal, such as those that are 0 in all
// rows: the later one is a second name of the bytes of the first.
type shared struct {
	w    *parquetfile.Writer
	done []sharedColumn
}

type sharedColumn struct {
	name string
	vals bitColumn
}

// bitColumn has the bits of the values of a column.
type bitColumn struct {
	ints   []int64
	floats []float64
}

// equal reports whether both columns have the same type and the same bits.
func (b bitColumn) equal(o bitColumn) bool {
	sameBits := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	return slices.Equal(b.ints, o.ints) && slices.EqualFunc(b.floats, o.floats, sameBits)
}

// add writes a column, which chunk encodes, or a second name of an equal one.
func (s *shared) add(name string, vals bitColumn, chunk func() (parquetfile.Chunk, error)) {
	for _, d := range s.done {
		if vals.equal(d.vals) {
			s.w.Alias(name, d.name)
			return
		}
	}
	s.w.Add(chunk())
	s.done = append(s.done, sharedColumn{name, vals})
}
