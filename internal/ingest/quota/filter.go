package quota

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/series"
)

// A filter counts the series of one period of the clock. It never refuses a series that it has
// accepted in the period. A series that it has not seen passes without being counted with a
// probability below maxLayers*falsePositives.
type filter struct {
	period time.Duration
	memory *memory.Budget // of the process, which the layers are charged to; nil: it has no limit
	held   int64          // bytes of the layers
	number int64          // of the period, since the epoch
	count  int
	layers []*bloom.BloomFilter // each is full when the next is made
	free   int                  // series that the last layer still takes
}

// The layers of a filter grow from firstLayer series by layerGrowth, so that memory follows the
// series that there are (about two bytes each) instead of the limit. Nine layers hold 50 million.
const (
	firstLayer     = 1 << 10
	layerGrowth    = 4
	maxLayers      = 9
	falsePositives = 0.0004
)

// at begins another period if the time is in one.
func (f *filter) at(now time.Time) {
	if n := now.UnixNano() / int64(f.period); n != f.number {
		f.release()
		*f = filter{period: f.period, memory: f.memory, number: n}
	}
}

// release gives back the memory of the layers, which are not used any more.
func (f *filter) release() {
	f.memory.Release(f.held)
	f.held = 0
}

// has reports whether the series was added, rarely also for one that was not.
func (f *filter) has(id []byte) bool {
	return slices.ContainsFunc(f.layers, func(l *bloom.BloomFilter) bool { return l.Test(id) })
}

// room makes room for another series. It returns a *memory.Error if the process has none.
func (f *filter) room() error {
	if f.free > 0 {
		return nil
	}
	free := firstLayer
	for range f.layers {
		free *= layerGrowth
	}
	bits, hashes := bloom.EstimateParameters(uint(free), falsePositives)
	size := int64(bits)/8 + 8
	if err := f.memory.TryAcquire(size); err != nil {
		return err
	}
	f.held += size
	f.free, f.layers = free, append(f.layers, bloom.New(bits, hashes))
	return nil
}

// add adds a series, for which room was called.
func (f *filter) add(id []byte) {
	f.layers[len(f.layers)-1].Add(id)
	f.free--
	f.count++
}

// identify returns the hash of a label set that is sorted and has no empty values.
func identify(lset []series.Label) []byte {
	var h xxh3.Hasher
	for _, l := range lset {
		_, _ = h.WriteString(l.Name) // a hash takes everything
		_, _ = h.Write(end)
		_, _ = h.WriteString(l.Value)
		_, _ = h.Write(end)
	}
	sum := h.Sum128()
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, sum.Lo), sum.Hi)
}

// end terminates a name or a value; no UTF-8 text has it.
var end = []byte{0xff}
