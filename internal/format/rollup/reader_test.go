package rollup

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Record is a row of a file with its series.
type Record struct {
	Metric   string
	SeriesID uint64
	Row
}

// record is a row as parquet-go reads it.
type record struct {
	Metric   string `parquet:"metric"`
	SeriesID uint64 `parquet:"series_id"`
	Bucket   int64  `parquet:"bucket,timestamp(millisecond)"`
	Flags    int64  `parquet:"flags"`
	Count    int64  `parquet:"count"`
	FirstT   int64  `parquet:"first_ts,timestamp(millisecond)"`
	LastT    int64  `parquet:"last_ts,timestamp(millisecond)"`
	NaNs     int64  `parquet:"nans"`
	Changes  int64  `parquet:"changes"`
	Resets   int64  `parquet:"resets"`
	Stale    int64  `parquet:"stale"`
	StaleT   int64  `parquet:"stale_ts,timestamp(millisecond)"`

	FirstInt    int64   `parquet:"first_int"`
	FirstDiv    float64 `parquet:"first_div"`
	LastInt     int64   `parquet:"last_int"`
	LastDiv     float64 `parquet:"last_div"`
	MinInt      int64   `parquet:"min_int"`
	MinDiv      float64 `parquet:"min_div"`
	MaxInt      int64   `parquet:"max_int"`
	MaxDiv      float64 `parquet:"max_div"`
	SumInt      int64   `parquet:"sum_int"`
	SumDiv      float64 `parquet:"sum_div"`
	ResetSumInt int64   `parquet:"reset_sum_int"`
	ResetSumDiv float64 `parquet:"reset_sum_div"`
	SumC        float64 `parquet:"sum_c"`
}

// readRows is how many rows Each reads at a time.
const readRows = 1024

// Reader reads a rollup. It belongs to one goroutine.
type Reader struct {
	step int64 // ms
	file *parquet.File
}

// OpenReader opens a rollup of size bytes and holds it against its checksums. Errors: ErrFormat,
// and those of r.
func OpenReader(r io.ReaderAt, size int64) (*Reader, error) {
	if _, err := parquetfile.Verify(r, size); err != nil {
		return nil, asFormat(err)
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("open rollup: %w", err)
	}
	v, ok := f.Lookup(VersionKey)
	if !ok {
		return nil, ErrFormat
	}
	if err := checksum.CheckVersion("rollups", v, Version); err != nil {
		return nil, err
	}
	text, _ := f.Lookup(StepKey)
	step, err := strconv.ParseInt(text, 10, 64)
	if err != nil || step <= 0 {
		return nil, fmt.Errorf("%w: %s is %q", ErrFormat, StepKey, text)
	}
	return &Reader{step: step, file: f}, nil
}

// Step returns the width of the buckets, ms.
func (r *Reader) Step() int64 { return r.step }

// Each calls visit for every row, in order.
func (r *Reader) Each(visit func(Record) error) error {
	rows := parquet.NewGenericReader[record](r.file)
	defer rows.Close() // read only
	buf := make([]record, readRows)
	for {
		n, err := rows.Read(buf)
		for i := range buf[:n] {
			if err := visit(buf[i].public()); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read rollup: %w", err)
		}
	}
}

func (r *record) public() Record {
	row := Row{
		Bucket: r.Bucket, Flags: r.Flags, Count: r.Count, FirstT: r.FirstT, LastT: r.LastT, NaNs: r.NaNs, Changes: r.Changes,
		Resets: r.Resets, Stale: r.Stale, StaleT: r.StaleT, SumC: r.SumC,
	}
	for f, stored := range [len(figures)]struct {
		whole int64
		div   float64
	}{{r.FirstInt, r.FirstDiv}, {r.LastInt, r.LastDiv}, {r.MinInt, r.MinDiv}, {r.MaxInt, r.MaxDiv}, {r.SumInt, r.SumDiv}, {r.ResetSumInt, r.ResetSumDiv}} {
		*figures[f].of(&row) = block.Value(row.nearLast(f, stored.whole, r.LastInt), stored.div)
	}
	row.restore()
	return Record{Metric: r.Metric, SeriesID: r.SeriesID, Row: row}
}
