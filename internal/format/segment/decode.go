package segment

import (
	"errors"
	"fmt"

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

// asFormat wraps an error about the Parquet file in ErrFormat.
func asFormat(err error) error {
	if errors.Is(err, parquetfile.ErrFormat) && !errors.Is(err, ErrFormat) {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}

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
