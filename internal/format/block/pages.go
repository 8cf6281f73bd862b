package block

import (
	"math/bits"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/parquetfile/delta"
)

const (
	// unitValues is the least size, in values, of a unit, for which one encoding is chosen: one
	// series, or several small ones that follow one another.
	unitValues = 1024
	// A unit that reaches a series of fewer than shortValues values ends at wideValues, or with its
	// metric, if it has metricValues: series of one metric have frequent bytes in common.
	shortValues  = 512
	wideValues   = 4096
	metricValues = 256
	// pageValues and pageBytes are the numbers of values and of compressed bytes at which a page ends
	// with the current series. metricBytes is that at which it ends with the current metric, because
	// most reads want whole metrics.
	pageValues  = 16 << 10
	pageBytes   = 16 << 10
	metricBytes = 8 << 10
	// A unit is PLAIN if that is smaller by more than one part in plainGain, because delta pages
	// scan faster.
	plainGain = 16
	// pageCost is the overhead of a page in bytes: its header and that of the zstd frame.
	pageCost = 36
	// deltaIsFine is the size of a delta unit, in bytes per 64 values before compression, up to
	// which no other encoding is tried: it could save little.
	deltaIsFine = 8
	// plainBits is by how many bits the deltas must be narrower than the range of the values to
	// skip PLAIN. Such values drift, and their deltas are smaller. This keeps nine tenths of what
	// trying everything saves, for a fifth of the tries.
	plainBits = 6
	// runValues is the least average length, in values, of runs of equal values that are stored as
	// runs, which scan three times as fast as deltas of zero.
	runValues = 24
	// partSkip is the number of units between two that are tried, of a part.
	partSkip = 7
)

// layout is the layout of the integers of a page.
type layout uint8

const (
	tightDelta   layout = iota // DELTA_BINARY_PACKED, as usual
	byteDelta                  // DELTA_BINARY_PACKED in whole bytes: see delta.AppendBytes
	literalDelta               // the same, compressed as parquetfile.Literals does
	plainInts                  // PLAIN
	equalRuns                  // RLE_DICTIONARY
)

// intPages divides the integers of a column chunk into pages and chooses their layouts. Deltas are
// smaller and faster to scan where neighbours are similar: bit-packed if the deltas are nearly
// random, in whole bytes if few of them are frequent. PLAIN is smaller for values that scatter
// around a mean or come from a small set. intPages compresses each layout to find out. It belongs
// to one goroutine.
type intPages struct {
	trial parquetfile.Trial
	bytes bool // try deltas in whole bytes
	skip  int  // neighbours of a unit, of its metric, that are not tried
	tried tried
	lits  parquetfile.Literals
	tight []byte // of the unit being tried, and its other layouts
	other []byte
	data  []byte // of all pages
	pages []parquetfile.Page
	ends  []int               // by page: its end in data
	runs  parquetfile.Numbers // the dictionary of the chunk
	dict  []byte
}

// tried is a unit whose layouts were compared.
type tried struct {
	best         layout
	size, values int
	metric       uint32
	left         int // the next units of the metric that have its layout without being tried
}

// newIntPages returns an intPages that compares layouts after compression with z. It tries deltas
// in whole bytes only if bytes is true, because they double the time and pay off where series are
// long. Most units of a metric have the layout of their neighbours: skip of them are not tried
// after one that was.
func newIntPages(z *zstd.Encoder, bytes bool, skip int) *intPages {
	return &intPages{trial: parquetfile.Trial{Encoder: z}, bytes: bytes, skip: skip}
}

// lay divides vals into pages that end where series end. ends are the ends of the series in vals,
// ascending; the last is len(vals). metrics are the ordinals of their metrics; nil: all have one.
// The chunk is valid until the next call.
func (p *intPages) lay(vals []int64, ends []int, metrics []uint32) (parquetfile.Chunk, error) {
	p.pages, p.data, p.ends = p.pages[:0], p.data[:0], p.ends[:0]
	p.runs.Reset()
	begin, from := 0, 0 // of the page and of the unit
	how := tightDelta   // the page
	size := 0           // of its units
	ended := false      // a metric ends before the unit
	metric := uint32(0) // with which the unit begins
	if len(metrics) > 0 {
		metric = metrics[0]
	}
	p.tried = tried{}
	series := 0 // where it begins
	for i, end := range ends {
		last := i+1 < len(metrics) && metrics[i] != metrics[i+1] // of its metric
		complete := i == len(ends)-1 || p.complete(end-from, end-series, last)
		if series = end; !complete {
			continue
		}
		l, n, err := p.choose(vals[from:end], metric)
		if err != nil {
			return parquetfile.Chunk{}, err
		}
		// Units of one layout share a page, except those in bytes: their deltas are relative to the
		// least one, and the step to another series would distort it.
		full := from-begin >= pageValues || size >= pageBytes || ended && size >= metricBytes
		if from > begin && (l != how || l == byteDelta || l == literalDelta || full) {
			if err := p.end(vals[begin:from], how); err != nil {
				return parquetfile.Chunk{}, err
			}
			begin, size = from, 0
		}
		from, how, size, ended = end, l, size+n, last
		if i+1 < len(metrics) {
			metric = metrics[i+1]
		}
	}
	if err := p.end(vals[begin:], how); err != nil {
		return parquetfile.Chunk{}, err
	}
	at := 0
	for i, end := range p.ends {
		p.pages[i].Data = p.data[at:end:end]
		at = end
	}
	p.dict = p.runs.AppendDict(p.dict[:0])
	return parquetfile.Chunk{Path: []string{ColInt}, Type: format.Int64, Dict: p.dict, DictLen: p.runs.Distinct(), Pages: p.pages}, nil
}

// complete reports whether values are a unit. Those of its last series are so many; last says that
// this is the last one of its metric. A part has small units, because comparing takes less time.
func (p *intPages) complete(values, series int, last bool) bool {
	if series >= shortValues || p.skip != tryAll {
		return values >= unitValues
	}
	return values >= wideValues || last && values >= metricValues
}

// end adds a page.
func (p *intPages) end(vals []int64, l layout) error {
	page := parquetfile.Page{Encoding: format.DeltaBinaryPacked, Values: len(vals)}
	switch l {
	case plainInts:
		page.Encoding = format.Plain
		p.data = parquetfile.AppendWords(p.data, vals)
	case byteDelta, literalDelta:
		page.Literals = l == literalDelta
		p.data = delta.AppendBytes(p.data, vals)
	case equalRuns:
		page.Encoding = format.RLEDictionary
		eachRun(vals, func(v int64, n int) { p.runs.Append(uint64(v), n) })
		p.data = p.runs.AppendPage(p.data)
	default:
		if err := p.pack(vals); err != nil {
			return err
		}
		p.data = append(p.data, p.tight...)
	}
	p.pages = append(p.pages, page)
	p.ends = append(p.ends, len(p.data))
	return nil
}

// pack bit-packs the deltas of vals.
func (p *intPages) pack(vals []int64) (err error) {
	p.tight, err = delta.Tight(p.tight, vals)
	return err
}

// choose returns the best layout for vals, which are not empty and begin with a series of a metric,
// and about the compressed size, in bytes.
func (p *intPages) choose(vals []int64, metric uint32) (best layout, size int, err error) {
	if runsOf(vals, len(vals)/runValues) {
		return equalRuns, 0, nil
	}
	if x := &p.tried; x.left > 0 && x.metric == metric {
		x.left--
		return x.best, int(int64(x.size) * int64(len(vals)) / int64(x.values)), nil
	}
	if best, size, err = p.compare(vals); err != nil {
		return 0, 0, err
	}
	p.tried = tried{best, size, len(vals), metric, p.skip}
	return best, size, nil
}

// compare is choose for vals that are not runs.
func (p *intPages) compare(vals []int64) (best layout, size int, err error) {
	if err := p.pack(vals); err != nil {
		return 0, 0, err
	}
	packed := len(p.tight)
	if packed*64 <= deltaIsFine*len(vals) {
		return tightDelta, packed, nil
	}
	best, size = tightDelta, p.trial.Size(p.tight)
	if p.bytes {
		p.other = delta.AppendBytes(p.other[:0], vals)
		if n := p.lits.Size(p.other) + pageCost; n < size {
			best, size = literalDelta, n
		}
		if n := p.trial.Size(p.other) + pageCost; n < size {
			best, size = byteDelta, n
		}
	}
	if packed*8 <= (rangeBits(vals)-plainBits)*len(vals) {
		return best, size, nil
	}
	p.other = parquetfile.AppendWords(p.other[:0], vals)
	if n := p.trial.Size(p.other); n*plainGain < size*(plainGain-1) {
		best, size = plainInts, n
	}
	return best, size, nil
}

// runsOf reports whether vals are at most limit runs of equal values.
func runsOf(vals []int64, limit int) bool {
	n := 1
	for i := 1; i < len(vals) && n <= limit; i++ {
		if vals[i] != vals[i-1] {
			n++
		}
	}
	return n <= limit
}

// eachRun calls f with every run of equal values and its length.
func eachRun(vals []int64, f func(v int64, n int)) {
	for len(vals) > 0 {
		n := 1
		for n < len(vals) && vals[n] == vals[0] {
			n++
		}
		f(vals[0], n)
		vals = vals[n:]
	}
}

// rangeBits returns the number of bits that distinguish the values.
func rangeBits(vals []int64) int {
	return bits.Len64(uint64(slices.Max(vals)) - uint64(slices.Min(vals)))
}
