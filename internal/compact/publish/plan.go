package publish

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// choose returns the blocks whose rows are published, and the others. No two of the chosen ones
// share a time of their windows and a series, so no sample is published twice: of overlapping
// blocks the one of the higher level is chosen, then the one of the higher rank. Parts are never
// chosen, because they are merged within minutes.
func choose(blocks []catalog.Block) (chosen, others []catalog.Block) {
	sorted := slices.Clone(blocks)
	slices.SortStableFunc(sorted, func(a, b catalog.Block) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), b.Rank.Compare(a.Rank))
	})
	for _, b := range sorted {
		if b.Level == key.Part || slices.ContainsFunc(chosen, func(c catalog.Block) bool { return overlap(b, c) }) {
			others = append(others, b)
		} else {
			chosen = append(chosen, b)
		}
	}
	return chosen, others
}

func overlap(a, b catalog.Block) bool {
	return int64(a.Window) < b.Level.End(b.Window) && int64(b.Window) < a.Level.End(a.Window) && a.Slice.Shares(b.Slice)
}

// dayMillis is the length of a UTC day. Each block lies in one.
const dayMillis = 24 * 60 * 60 * 1000

// day is the published blocks of a UTC day.
type day struct {
	start  int64 // ms since the epoch
	blocks []catalog.Block
}

// daysOf returns blocks by day, in ascending order.
func daysOf(blocks []catalog.Block) []day {
	var days []day
	for _, b := range slices.SortedFunc(slices.Values(blocks), func(a, b catalog.Block) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), a.ID.Compare(b.ID))
	}) {
		start := int64(key.L24h.WindowOf(int64(b.Window)))
		if n := len(days); n == 0 || days[n-1].start != start {
			days = append(days, day{start: start})
		}
		last := &days[len(days)-1]
		last.blocks = append(last.blocks, b)
	}
	return days
}

// layoutVersion changes the names of manifests, so that all are written anew after a change of what
// they have.
const layoutVersion = "1"

// stem is the first part of the names of the day's manifests. Manifests of equal stems have equal
// files.
func (d *day) stem() string {
	h := sha256.New()
	h.Write([]byte(layoutVersion))
	for _, b := range d.blocks {
		h.Write([]byte("\n" + b.BlockID().String()))
	}
	return time.UnixMilli(d.start).UTC().Format("20060102") + "-" + hex.EncodeToString(h.Sum(nil)[:8]) + "-"
}

// manifestName is the name of a manifest from which a number of the day's blocks are left out,
// because an earlier version wrote them.
func manifestName(stem string, old int, id ulid.ULID) string {
	return stem + strconv.Itoa(old) + "-" + id.String() + ".avro"
}

// leftOut returns the number of blocks that a manifest with this stem leaves out.
func leftOut(name, stem string) int {
	n, _, _ := strings.Cut(strings.TrimPrefix(name, stem), "-")
	old, _ := strconv.Atoi(n) // manifestName made the name
	return old
}
