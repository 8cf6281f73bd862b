package block

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Samples is what one series holds.
type Samples struct {
	TS        []int64 // ms, ascending, unique
	V         []float64
	ST        []int64             // ms, aligned with TS, 0 = unknown; nil if no sample has one
	Hists     []segment.Hist      // ascending, unique T
	Exemplars []exemplar.Exemplar // ascending Ts
}

// Errors of a caller that breaks the contract of Append.
var (
	ErrOrder = errors.New("series are not in block order")
	ErrShape = errors.New("samples of a series do not fit together")
)

// Writer writes one block. Its memory is bounded by the columns of a row group and about 40 bytes
// per series. It belongs to one goroutine. After an error the block is lost.
type Writer struct {
	files Files
	view  *series.View
	opts  Options
	zstd  *zstd.Encoder
	trial *zstd.Encoder // of layouts

	rows      entries
	last      uint64 // LastID
	ids       idSet
	floats    *floats
	hists     *blobs
	exemplars *blobs
	metadata  *table
	added     []File
	meta      Meta
}

// NewWriter begins a block whose label sets are references into view, most of them in the block.
func NewWriter(files Files, view *series.View, o Options) (*Writer, error) {
	o.RowGroupRows, o.FileBytes = cmp.Or(o.RowGroupRows, DefaultRowGroupRows), cmp.Or(o.FileBytes, DefaultFileBytes)
	switch {
	case o.RowGroupRows < 1:
		return nil, fmt.Errorf("block options: %d rows in a row group", o.RowGroupRows)
	case o.FileBytes < 1:
		return nil, fmt.Errorf("block options: %d bytes in a file", o.FileBytes)
	case int(o.Level) >= len(squeeze):
		return nil, fmt.Errorf("block options: unknown level %s", o.Level)
	}
	z, err := o.Encoders.Get(squeeze[o.Level])
	if err != nil {
		return nil, err
	}
	tries, err := o.Encoders.Get(trial(o.Level))
	if err != nil {
		return nil, err
	}
	n := view.Len()
	w := &Writer{
		files: files, view: view, opts: o, zstd: z, trial: tries, ids: newIDSet(math.MaxUint64, n),
		rows: entries{refs: make([]series.Ref, 0, n), floats: make([]uint32, 0, n), times: make([][2]int64, 0, n), moved: map[uint32]uint64{}},
	}
	w.meta = Meta{Version: FormatVersion, HasST: o.HasST, MinT: math.MaxInt64, MaxT: math.MinInt64}
	w.floats, w.hists, w.exemplars = newFloats(files, z, tries, n, o), newHists(files, z, o), newExemplars(files, z, o)
	return w, nil
}

// Append adds the next series in block order. It omits a series without samples and exemplars. It
// does not keep the slices of s. Errors: ErrOrder, ErrShape, and those of Files.
func (w *Writer) Append(ref series.Ref, s *Samples) error {
	// Refuse series that would make the block unreadable.
	if n := w.rows.len(); n > 0 && series.ComparePriority(w.view, w.rows.refs[n-1], ref) >= 0 {
		return fmt.Errorf("append series %d after %d: %w", ref, w.rows.refs[n-1], ErrOrder)
	}
	if len(s.V) != len(s.TS) || s.ST != nil && len(s.ST) != len(s.TS) {
		return fmt.Errorf("append series %d: %d timestamps, %d values, %d start timestamps: %w", ref, len(s.TS), len(s.V), len(s.ST), ErrShape)
	}
	if !w.opts.HasST && slices.ContainsFunc(s.ST, func(t int64) bool { return t != 0 }) {
		return fmt.Errorf("append series %d: start timestamps in a block that was begun without: %w", ref, ErrShape)
	}
	if len(s.TS)+len(s.Hists)+len(s.Exemplars) == 0 {
		return nil
	}
	id := w.view.ID(ref)
	e := entry{
		ref: ref, id: w.ids.assign(id), minT: math.MaxInt64, maxT: math.MinInt64,
		floats: uint32(len(s.TS)), hists: uint32(len(s.Hists)), exemplars: uint32(len(s.Exemplars)),
	}
	if n := len(s.TS); n > 0 {
		e.see(s.TS[0], s.TS[n-1])
	}
	if n := len(s.Hists); n > 0 {
		e.see(s.Hists[0].T, s.Hists[n-1].T)
	}
	if n := len(s.Exemplars); n > 0 {
		e.see(s.Exemplars[0].Ts, s.Exemplars[n-1].Ts)
	}
	o := owner{view: w.view, ref: ref, id: e.id, row: int64(w.rows.len())}
	w.rows.add(&e, id)
	w.last = e.id
	w.meta.MinT, w.meta.MaxT = min(w.meta.MinT, e.minT), max(w.meta.MaxT, e.maxT)
	if err := w.floats.append(&o, s.TS, s.V, s.ST); err != nil {
		return err
	}
	if err := w.hists.addHists(&o, s.Hists); err != nil {
		return err
	}
	return w.exemplars.addExemplars(&o, s.Exemplars)
}

// Metadata writes the descriptions of metric families, sorted by metric. It is called at most once.
func (w *Writer) Metadata(m []segment.Metadata) error {
	if w.metadata != nil {
		return errors.New("write metadata of a block twice")
	}
	t, err := writeMetadata(w.files, w.zstd, w.opts.RowGroupRows, m)
	w.metadata = t
	return err
}

// LastID returns the series_id that the block assigned to the series which was appended last: that
// of its labels, or a later one if another series of the block has it. 0 before the first Append.
func (w *Writer) LastID() uint64 { return w.last }

// AddFile names a file that the caller wrote through the same Files, so that meta.json lists it.
func (w *Writer) AddFile(name string, bytes int64) {
	w.added = append(w.added, File{Name: name, Bytes: bytes})
}

// Close writes the remaining rows, then series.parquet and, last, meta.json, which it returns. The
// writer must not be used afterwards.
func (w *Writer) Close(h Header) (Meta, error) {
	for _, end := range []func() error{w.floats.flush, w.floats.end, w.hists.flush, w.hists.end, w.exemplars.flush, w.exemplars.end} {
		if err := end(); err != nil {
			return Meta{}, err
		}
	}
	table, labels, err := writeSeries(w.files, w.zstd, seriesGroupRows, w.view, &w.rows)
	if err != nil {
		return Meta{}, err
	}
	m := w.meta
	m.Header = h
	if w.rows.len() == 0 {
		m.MinT, m.MaxT = 0, -1
	}
	m.Series, m.LabelColumns, m.MapNames = table.rows, labels.Names, labels.MapNames
	m.Floats, m.Hists, m.Exemplars = w.floats.rows, w.hists.rows, w.exemplars.rows
	m.Files = slices.Concat(table.done, w.floats.done, w.hists.done, w.exemplars.done, w.added)
	if w.metadata != nil {
		m.Metadata = w.metadata.rows
		m.Files = append(m.Files, w.metadata.done...)
	}
	slices.SortFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	// Equal blocks have equal bytes.
	text, err := json.Marshal(&m)
	if err != nil {
		return m, fmt.Errorf("encode meta.json: %w", err)
	}
	if text, err = checksum.Append(append(text, '\n')); err != nil {
		return m, fmt.Errorf("encode meta.json: %w", err)
	}
	out, err := w.files.Create(MetaFile)
	if err != nil {
		return m, fmt.Errorf("create %s: %w", MetaFile, err)
	}
	if _, err := out.Write(text); err != nil {
		return m, fmt.Errorf("write %s: %w", MetaFile, err)
	}
	if err := out.Close(); err != nil {
		return m, fmt.Errorf("close %s: %w", MetaFile, err)
	}
	w.opts.Encoders.Put(squeeze[w.opts.Level], w.zstd)
	w.opts.Encoders.Put(trial(w.opts.Level), w.trial)
	return m, nil
}

// Files stores the files of a block. A file that was closed without an error is durable. A block is
// complete once meta.json, its last file, is closed. Several files are open at a time; after an
// error of the writer they stay open, and the implementation of Files disposes of them.
type Files interface {
	Create(name string) (io.WriteCloser, error)
}

// Defaults of Options.
const (
	DefaultRowGroupRows = 128 << 10
	DefaultFileBytes    = 64 << 20
)

// Options shape a block. The zero value of a number means its default.
type Options struct {
	Level        key.Level // chooses the compression level: higher for blocks that live longer
	HasST        bool      // sample files have the column st
	RowGroupRows int       // rows of a row group at most
	FileBytes    int64     // about, of a file of samples or histograms; it ends with a row group
	Floats       int64     // of the block, about: the writer makes room for them once. 0: unknown
	// Encoders keeps the block's zstd encoder for later blocks. nil keeps none.
	Encoders *parquetfile.Encoders
}

// squeeze is the compression level by block level.
var squeeze = [...]zstd.EncoderLevel{
	key.Part: zstd.SpeedFastest,
	key.L2h:  zstd.SpeedDefault,
	key.L12h: zstd.SpeedBetterCompression,
	key.L24h: zstd.SpeedBetterCompression,
}

// trial returns the compression level at which the layouts of integers are compared for a block of
// level l. Trials take more time than the pages that are kept, and a faster level nearly always
// chooses the same layouts.
func trial(l key.Level) zstd.EncoderLevel { return min(squeeze[l], zstd.SpeedDefault) }

// tryAll, of newIntPages, lets each unit be tried.
const tryAll = 0

// untried is how many neighbours of the first unit of a metric have its layout without being tried:
// nearly all of a part, which lives for two hours, would have it anyway.
func untried(l key.Level) int {
	if l == key.Part {
		return partSkip
	}
	return tryAll
}
