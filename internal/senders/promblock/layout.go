package promblock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"
)

// histogramHeader is the number of bytes before the layout in the chunks of native histograms: the
// number of samples, and flags or the header of start timestamps.
const histogramHeader = 3

// checkBuckets returns an error if a chunk of native histograms claims more buckets than it can
// hold. Upstream's iterator makes room for as many as the lengths of the spans add up to, and each
// bucket of the first sample takes at least one bit.
//
//	layout = zero-threshold schema spans spans …   ; positive, then negative buckets
//	zero-threshold = a byte, and after 255 eight more
//	spans = count *(length offset)   ; numbers are varbits
func checkBuckets(c chunkenc.Chunk) error {
	switch c.Encoding() {
	case chunkenc.EncHistogram, chunkenc.EncFloatHistogram, chunkenc.EncHistogramST, chunkenc.EncFloatHistogramST:
	default:
		return nil
	}
	b := c.Bytes()
	most := 8 * uint64(len(b))
	r := &bitReader{b: b[min(histogramHeader, len(b)):]}
	if r.bits(8) == 255 {
		r.bits(64)
	}
	r.varbit() // schema
	buckets := uint64(0)
	for range 2 {
		for n := r.varbit(); n > 0 && !r.ended; n-- {
			buckets += uint64(uint32(r.varbit())) // upstream keeps 32 bits, too
			r.varbit()                            // offset
			if buckets > most {
				return fmt.Errorf("its spans have more than %d buckets, the limit of a chunk of %d bytes", most, len(b))
			}
		}
	}
	if r.ended && c.NumSamples() > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// bitReader reads bits from the highest of each byte on. After the end it returns zeros.
type bitReader struct {
	b     []byte
	at    int // bits
	ended bool
}

// bits reads a number of n bits.
func (r *bitReader) bits(n int) (v uint64) {
	if r.at+n > 8*len(r.b) {
		r.at, r.ended = 8*len(r.b), true
		return 0
	}
	for ; n > 0; n-- {
		v = v<<1 | uint64(r.b[r.at/8]>>(7-r.at%8)&1)
		r.at++
	}
	return v
}

// varbitSizes are the bits of a number by the ones before it, of which there are at most eight. A
// zero follows fewer ones.
var varbitSizes = [...]int{0, 3, 6, 9, 12, 18, 25, 56, 64}

// varbit reads a number as chunkenc writes unsigned ones.
func (r *bitReader) varbit() uint64 {
	ones := 0
	for ones < len(varbitSizes)-1 && r.bits(1) == 1 {
		ones++
	}
	return r.bits(varbitSizes[ones])
}

// guard is deferred around upstream's decoders. They trust bytes whose checksums match, and panic
// where these make no sense. A server reads the blocks of its clients, so this must be an error.
func guard(err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("%w: it cannot be decoded: %v", ErrFormat, x)
	}
}

func openBlock(dir string, pool chunkenc.Pool) (b *tsdb.Block, err error) {
	defer guard(&err)
	if err := checkTombstones(dir); err != nil {
		return nil, err
	}
	return tsdb.OpenBlock(slog.New(slog.DiscardHandler), dir, pool, nil)
}

// all returns the postings of all series.
func (b *Block) all(ctx context.Context) (p index.Postings, err error) {
	defer guard(&err)
	name, value := index.AllPostingsKey()
	return b.index.Postings(ctx, name, value)
}

// series reads the labels and the places of the chunks of a series.
func (b *Block) series(ref storage.SeriesRef, builder *labels.ScratchBuilder, metas *[]chunks.Meta) (err error) {
	defer guard(&err)
	return b.index.Series(ref, builder, metas)
}

// Bytes of a file of tombstones before and after its intervals: magic number and version; checksum.
const (
	tombstonesHead = 5
	tombstonesTail = 4
)

// checkTombstones returns an error unless the intervals of each series ascend without touching, as
// Prometheus writes them. Upstream's reader inserts every interval among those before it, so a few
// megabytes in another order would take it hours. Upstream's reader reports what else is wrong with
// the file.
//
//	intervals = *(series first-time last-time)   ; uvarint, varint, varint
func checkTombstones(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, tombstones.TombstonesFilename))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(raw) < tombstonesHead+tombstonesTail {
		return nil
	}
	if err != nil {
		return err
	}
	last := map[uint64]int64{} // the latest time of a series' intervals
	for rest := raw[tombstonesHead : len(raw)-tombstonesTail]; len(rest) > 0; {
		ref, n := binary.Uvarint(rest)
		from, k := binary.Varint(rest[max(n, 0):])
		to, j := binary.Varint(rest[max(n, 0)+max(k, 0):])
		if n <= 0 || k <= 0 || j <= 0 {
			return nil
		}
		rest = rest[n+k+j:]
		if before, ok := last[ref]; ok && (from == math.MinInt64 || from-1 <= before) {
			return fmt.Errorf("tombstones of series %d are not in the order of time", ref)
		}
		last[ref] = max(to, from)
	}
	return nil
}
