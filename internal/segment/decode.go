package segment

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/series"
)

// Decode decodes the series of a segment that keep chooses by their series.ID, nil all: the rows of
// others have the reference series.None. Label sets that t does not have are interned; the caller
// must hold t's write lock. The batch's View is nil: the caller sets it after all changes of t. The
// batch does not alias data.
//
// A label set that t knows from an earlier segment costs a hash of integers and one lookup: strings
// are read once per dictionary entry, and a row costs work only for labels that it has.
//
// Errors: ErrFormat (also for a segment of a later version), and series.ErrFull.
func Decode(data []byte, t *series.Table, keep func(id uint64) bool) (*Batch, error) {
	return NewDecoder(t, keep).Decode(data)
}

// Decoder decodes segments into one table. It reuses its memory for the next segment. It is not
// safe for concurrent use.
type Decoder struct {
	series *SeriesDecoder
	lists  listDecoder
}

// NewDecoder returns a decoder into t of the series that keep chooses.
func NewDecoder(t *series.Table, keep func(id uint64) bool) *Decoder {
	return &Decoder{series: NewSeriesDecoder(t, 0, keep)}
}

// Decode is the function Decode with the decoder's table and choice.
func (r *Decoder) Decode(data []byte) (*Batch, error) {
	b := &Batch{}
	if err := r.Into(b, data); err != nil {
		return nil, err
	}
	return b, nil
}

// Into is Decode into a batch whose content is no longer needed. Its columns are reused.
func (r *Decoder) Into(b *Batch, data []byte) error {
	l, err := parquetfile.ReadLayout(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return asFormat(err)
	}
	*b = Batch{Rows: b.Rows[:0], End: b.End[:0], TS: b.TS[:0], V: b.V[:0]}
	d := decoder{layout: l, series: r.series, lists: &r.lists, batch: b}
	if err := checkVersion(l.KeyValues); err != nil {
		return err
	}
	if b.Metadata, err = decodeMetadata(l.KeyValues); err != nil {
		return err
	}
	for i := range l.Groups {
		d.group = l.InBytes(i, data)
		if err := d.decodeGroup(); err != nil {
			return fmt.Errorf("decode row group %d: %w", i, asFormat(err))
		}
	}
	return d.series.CheckOrder(b.Rows, (*series.View).Compare)
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
	layout *parquetfile.Layout
	group  parquetfile.GroupReader
	series *SeriesDecoder
	lists  *listDecoder
	batch  *Batch
}

func (d *decoder) decodeGroup() error {
	refs, _, err := d.series.Group(&d.group)
	if err != nil {
		return err
	}
	first := len(d.batch.Rows)
	d.batch.Rows = append(d.batch.Rows, refs...)
	d.lists.begin(&d.group, len(refs))
	if err := d.floats(); err != nil {
		return err
	}
	if err := d.hists(first); err != nil {
		return err
	}
	return d.exemplars(first)
}
