package block

import (
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/parquetfile/delta"
	"github.com/promlake/promlake/internal/format/segment"
)

// Columns of samples-NNNN.parquet that segments do not have.
const (
	ColInt = "v_int"
	ColDiv = "v_div"
)

// Aliases: the same bytes as series_id and as the times, as plain signed integers, which readers of
// Iceberg tables need. ColTSMillis is also the ending of the names of other times.
const (
	ColSignedID = "id_signed"
	ColTSMillis = "ts_ms"
)

// floats writes samples-NNNN.parquet.
type floats struct {
	keyColumns
	*table
	hasST bool
	limit int // rows of a row group

	enc   Encoder
	pages *intPages
	cols  Columns
	ts    []int64
	st    []int64
	ends  []int    // rows of the group at which a series ends
	names []uint32 // by series of the group: the ordinal of its metric

	tsHow, stHow times

	num   parquetfile.Numbers
	trial parquetfile.Trial
	other parquetfile.Scratch // of the second encoding that is tried
}

// newFloats returns a writer of the floats of so many series, about.
func newFloats(files Files, z, tries *zstd.Encoder, series int, o Options) *floats {
	schema := keySchema("promlake_samples", parquetfile.Bare(ColInt, format.Int64), parquetfile.Bare(ColDiv, format.Double))
	if o.HasST {
		schema.Add(parquetfile.Timestamp(segment.ColST))
	}
	schema.Add(parquetfile.Bare(ColSignedID, format.Int64))
	schema.Add(parquetfile.Bare(ColTSMillis, format.Int64))
	f := &floats{table: newTable(files, z, SamplesFile, o.FileBytes, schema), hasST: o.HasST, limit: o.RowGroupRows, pages: newIntPages(tries, o.Level >= key.L12h, untried(o.Level)), trial: parquetfile.Trial{Encoder: z}}
	f.keyColumns.reset()
	f.reserve(min(o.Floats, int64(o.RowGroupRows)), o.Floats, int64(series))
	return f
}

// reserve makes room for a row group of n of all samples, which are of so many series. Columns that
// grow while they are filled leave several times their memory to the garbage collector.
func (f *floats) reserve(n, all, series int64) {
	if n == 0 {
		return
	}
	f.ts, f.cols.Int, f.cols.Div = make([]int64, 0, n), make([]int64, 0, n), make([]float64, 0, n)
	if f.hasST {
		f.st = make([]int64, 0, n)
	}
	owners := int(min(n, n*series/all+1))
	f.ends, f.names = make([]int, 0, owners), make([]uint32, 0, owners)
	f.id.Reserve(owners)
}

// append adds the samples of the next series. A series that does not fit into the open row group
// begins a new one, unless that would leave more than half of the group unused: then it spans
// groups.
func (f *floats) append(o *owner, ts []int64, v []float64, st []int64) error {
	for len(ts) > 0 {
		used := len(f.ts)
		if room := f.limit - used; room == 0 || room < len(ts) && used >= (f.limit+1)/2 {
			if err := f.flush(); err != nil {
				return err
			}
			continue
		}
		n := min(len(ts), f.limit-used)
		f.keyColumns.append(o, n, ts[0], ts[n-1])
		f.ts = append(f.ts, ts[:n]...)
		f.enc.Encode(&f.cols, v[:n])
		switch {
		case !f.hasST:
		case st == nil:
			f.st = append(f.st, make([]int64, n)...)
		default:
			f.st, st = append(f.st, st[:n]...), st[n:]
		}
		f.ends, f.names = append(f.ends, len(f.ts)), append(f.names, o.view.Metric(o.ref))
		ts, v = ts[n:], v[n:]
	}
	return nil
}

// flush writes the open row group, if it has rows.
func (f *floats) flush() error {
	if len(f.ts) == 0 {
		return nil
	}
	if err := f.begin(); err != nil {
		return err
	}
	f.write(f.table)
	f.pq.Add(f.timeChunk(segment.ColTS, f.ts, &f.tsHow))
	f.pq.Add(f.pages.lay(f.cols.Int, f.ends, f.names))
	f.group.Pages = stretchesOf(f.pages.pages, f.pq.PageSizes())
	// v_div compares values by their bits.
	f.num.Reset()
	eachRun(intsOf(f.cols.Div), func(b int64, n int) { f.num.Append(uint64(b), n) })
	f.pq.Add(f.num.Doubles(ColDiv, &f.s), nil)
	if f.hasST {
		f.pq.Add(f.timeChunk(segment.ColST, f.st, &f.stHow))
	}
	f.pq.Alias(ColSignedID, segment.ColSeriesID)
	f.pq.Alias(ColTSMillis, segment.ColTS)
	g := f.group
	f.keyColumns.reset()
	f.cols.Reset()
	f.ts, f.st, f.ends, f.names = f.ts[:0], f.st[:0], f.ends[:0], f.names[:0]
	return f.endGroup(g)
}

// gridShare is the least number of times per compressed byte at which times count as regular; then
// no second encoding is tried.
const gridShare = 32

// times is how a column of times is encoded.
type times struct {
	bytes bool // in whole bytes
	left  int  // the next row groups that have the encoding of the one before without another try
}

// timeChunk builds ts or st: delta-coded, bit-packed or in whole bytes, whichever is smaller. Where
// the times of a scrape are irregular, all of its series repeat one sequence of deltas, and zstd
// finds it again only in whole bytes. It is mostly the same in all row groups of a block.
func (f *floats) timeChunk(name string, vals []int64, how *times) (parquetfile.Chunk, error) {
	if how.left--; how.left >= 0 && how.bytes {
		return parquetfile.ByteInt64s(name, &f.s, vals), nil
	}
	c, err := parquetfile.Int64s(name, &f.s, vals)
	if err != nil || how.left >= 0 {
		return c, err
	}
	page := &c.Pages[0]
	tight := f.trial.Size(page.Data)
	if *how = (times{left: f.pages.skip}); tight*gridShare <= len(vals) {
		return c, nil
	}
	f.other.Data = delta.AppendBytes(f.other.Data[:0], vals)
	if f.trial.Size(f.other.Data) < tight {
		page.Data, how.bytes = f.other.Data, true
	}
	return c, nil
}
