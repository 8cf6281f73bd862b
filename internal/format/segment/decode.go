package segment

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// Decode decodes the series of a segment that keep chooses by their series.ID, nil all: the rows of
// others have the reference series.None. Label sets that t does not have are interned; the caller
// must hold t's write lock. The batch's View is nil: the caller sets it after all changes of t. The
// batch does not alias data.
//
// A label set that t knows from an earlier segment costs a hash of integers and one lookup: strings
// are read once per dictionary entry, and a row costs work only for labels that it has.
//
// Errors: ErrFormat, checksum.ErrUnknownVersion, checksum.ErrDamaged, and series.ErrFull.
func Decode(data []byte, t *series.Table, keep func(id uint64) bool) (*Batch, error) {
	f, err := Open(data)
	if err != nil {
		return nil, err
	}
	return NewDecoder(t, keep).Decode(&f)
}

// Decoder decodes segments into one table. It reuses its memory for the next segment, and what it
// knows of row groups with the same label sets. It is not safe for concurrent use.
type Decoder struct {
	series *SeriesDecoder
	seen   seenRows
	lists  listDecoder
}

// NewDecoder returns a decoder into t of the series that keep chooses.
func NewDecoder(t *series.Table, keep func(id uint64) bool) *Decoder {
	return &Decoder{series: NewSeriesDecoder(t, 0, keep), seen: seenRows{limit: seenLimit}}
}

// Decode is the function Decode with the decoder's table and choice.
func (r *Decoder) Decode(f *File) (*Batch, error) {
	b := &Batch{}
	if err := r.Into(b, f); err != nil {
		return nil, err
	}
	return b, nil
}

// Into is Decode into a batch whose content is no longer needed. Its columns are reused.
func (r *Decoder) Into(b *Batch, f *File) (err error) {
	*b = Batch{Rows: b.Rows[:0], End: b.End[:0], TS: b.TS[:0], V: b.V[:0]}
	if b.Metadata, err = decodeMetadata(f.layout.KeyValues); err != nil {
		return err
	}
	d := decoder{Decoder: r, layout: f.layout, batch: b}
	seen := false
	for i := range f.layout.Groups {
		d.group = f.layout.InBytes(i, f.data)
		if seen, err = d.decodeGroup(); err != nil {
			return fmt.Errorf("decode row group %d: %w", i, asFormat(err))
		}
	}
	if seen && len(f.layout.Groups) == 1 { // then its order was checked
		return nil
	}
	return r.series.CheckOrder(b.Rows, (*series.View).Compare)
}

func asFormat(err error) error { return parquetfile.AsFormat(ErrFormat, err) }

// decoder decodes one segment.
type decoder struct {
	*Decoder
	layout *parquetfile.Layout
	group  parquetfile.GroupReader
	batch  *Batch
}

// decodeGroup appends a row group to the batch. seen reports whether its label sets are those of a
// row group that the decoder has read before.
func (d *decoder) decodeGroup() (seen bool, err error) {
	first := len(d.batch.Rows)
	if seen, err = d.rows(); err != nil {
		return false, err
	}
	d.lists.begin(&d.group, len(d.batch.Rows)-first)
	if err := d.floats(); err != nil {
		return false, err
	}
	if err := d.hists(first); err != nil {
		return false, err
	}
	return seen, d.exemplars(first)
}

// rows appends the label sets of a row group.
func (d *decoder) rows() (seen bool, err error) {
	key, err := d.seen.keyOf(&d.group, d.series.table.Seed())
	if err != nil {
		return false, err
	}
	refs, seen := d.seen.find(key)
	if !seen {
		if refs, _, err = d.series.Group(&d.group); err != nil {
			return false, err
		}
		d.seen.add(key, append(make([]series.Ref, 0, len(refs)), refs...))
	}
	d.batch.Rows = append(d.batch.Rows, refs...)
	return seen, nil
}

// seenRows are the label sets of the row groups that a decoder has read, by the bytes of their
// label columns: senders that write the same series again and again have the same bytes in many
// segments. What was not found for long makes room.
type seenRows struct {
	found, before map[series.Key][]series.Ref // put or found lately; and before that
	rows          int                         // in found
	limit         int                         // seenLimit
	buf           []byte
}

// seenLimit is the number of rows at which those that were not found lately are forgotten: they and
// those after them take eight megabytes.
const seenLimit = 1 << 20

// keyOf returns a keyed hash of all that the label sets of a row group are decoded from: the
// places of their columns, which the checksums of pages are of, and the bytes. Equal keys are equal
// bytes, as in a series.Table.
func (s *seenRows) keyOf(g *parquetfile.GroupReader, seed uint64) (series.Key, error) {
	s.buf = s.buf[:0]
	for leaf := range g.Layout.Leaves {
		l := &g.Layout.Leaves[leaf]
		if p := l.Path[0]; p != ColMetric && p != ColSeriesID && p != ColLabels && !strings.HasPrefix(p, LabelPrefix) {
			continue
		}
		b, err := g.Stored(leaf)
		if err != nil {
			return series.Key{}, err
		}
		s.buf = g.AppendDescription(s.buf, leaf)
		h := xxh3.Hash128Seed(b, seed)
		s.buf = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(s.buf, h.Hi), h.Lo)
	}
	return xxh3.Hash128Seed(s.buf, seed), nil
}

// find returns the label sets of a row group, if it was read before.
func (s *seenRows) find(k series.Key) ([]series.Ref, bool) {
	refs, ok := s.found[k]
	if !ok {
		if refs, ok = s.before[k]; ok {
			s.add(k, refs)
		}
	}
	return refs, ok
}

func (s *seenRows) add(k series.Key, refs []series.Ref) {
	if s.found == nil || s.rows+len(refs) > s.limit {
		s.found, s.before, s.rows = map[series.Key][]series.Ref{}, s.found, 0
	}
	s.found[k] = refs
	s.rows += len(refs)
}

// File is an encoded segment in memory whose footer is decoded.
type File struct {
	layout  *parquetfile.Layout
	data    []byte
	samples int64
}

// Open decodes the footer of a segment. The result shares data. Errors: ErrFormat.
func Open(data []byte) (File, error) {
	l, err := parquetfile.LayoutOf(data)
	if err != nil {
		return File{}, asFormat(err)
	}
	if err := checkVersion(l.KeyValues); err != nil {
		return File{}, err
	}
	f := File{layout: l, data: data}
	if f.HasRest() { // only then the number of values is not that of samples
		var info Info
		if err := json.Unmarshal([]byte(l.KeyValues[kvInfo]), &info); err != nil {
			return File{}, fmt.Errorf("%w: decode info: %w", ErrFormat, err)
		}
		f.samples = info.Samples
	} else if leaf := l.Column(parquetfile.ListPath(ColTS)...); leaf >= 0 {
		for i := range l.Groups {
			f.samples += l.Groups[i].Chunks[leaf].Values
		}
	}
	return f, nil
}

// Bytes is the size of the file.
func (f *File) Bytes() int64 { return int64(len(f.data)) }

// Rows is the number of series.
func (f *File) Rows() int64 { return f.layout.Rows }

// Samples is the number of samples. A series without any counts as one.
func (f *File) Samples() int64 { return f.samples }

// HasST reports whether samples have start timestamps.
func (f *File) HasST() bool { return f.has(ColST) }

// HasRest reports whether there are native histograms or exemplars.
func (f *File) HasRest() bool { return f.has(ColHist) || f.has(ColExTS) }

func (f *File) has(col string) bool { return f.layout.Column(parquetfile.ListPath(col)...) >= 0 }
