package segment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/series"
)

// Decode reads a whole segment. Its rows become references into t, which gains the label sets that
// it does not have; whoever calls holds t's write lock. The batch's View is nil: the caller sets it
// once t has all that it needs. The batch keeps nothing of data.
//
// The label sets that t has seen in earlier segments cost a hash of integers and one probe: strings
// are touched once per dictionary entry, and rows only where they have a label.
//
// Errors: ErrFormat (also for a segment of a later version), and series.ErrFull.
func Decode(data []byte, t *series.Table) (*Batch, error) {
	l, err := parquetfile.ReadLayout(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, asFormat(err)
	}
	d := decoder{layout: l, series: NewSeriesDecoder(t, 0)}
	if err := d.footer(); err != nil {
		return nil, err
	}
	for i := range l.Groups {
		d.group = l.InBytes(i, data)
		if err := d.decodeGroup(); err != nil {
			return nil, fmt.Errorf("decode row group %d: %w", i, asFormat(err))
		}
	}
	if err := d.series.CheckOrder(d.batch.Rows, (*series.View).Compare); err != nil {
		return nil, err
	}
	return &d.batch, nil
}

// asFormat makes a broken Parquet file a broken segment.
func asFormat(err error) error {
	if errors.Is(err, parquetfile.ErrFormat) && !errors.Is(err, ErrFormat) {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}

// decoder reads one segment.
type decoder struct {
	layout *parquetfile.Layout
	group  parquetfile.GroupReader
	series *SeriesDecoder
	lists  listDecoder
	batch  Batch
}

// footer checks the version and reads the metadata.
func (d *decoder) footer() error {
	kv := d.layout.KeyValues
	if v, err := strconv.Atoi(kv[kvVersion]); err != nil || v != FormatVersion {
		return fmt.Errorf("%w: version %q, this build reads %d", ErrFormat, kv[kvVersion], FormatVersion)
	}
	if m, ok := kv[kvMetadata]; ok {
		if err := json.Unmarshal([]byte(m), &d.batch.Metadata); err != nil {
			return fmt.Errorf("%w: decode metadata: %w", ErrFormat, err)
		}
	}
	return nil
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
