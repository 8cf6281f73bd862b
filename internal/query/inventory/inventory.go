// Package inventory describes what a tenant's lake holds: live objects by level and window, what
// waits to be deleted, and deletions that are under way. It is pure.
package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Inventory is the answer of /api/v1/status/lake. All times are in ms since the Unix epoch.
type Inventory struct {
	Generation      uint64     `json:"generation"` // of the manifest; 0: there is none
	Committed       int64      `json:"committed,omitempty"`
	Levels          []Level    `json:"levels"`  // of which there are objects, in the order of compaction
	Windows         []Window   `json:"windows"` // by start, then level
	Bytes           int64      `json:"bytes"`   // of all live objects
	OldestSegment   int64      `json:"oldestSegment,omitempty"`
	Waiting         Waiting    `json:"waiting"`
	Deletions       []Deletion `json:"deletions"`
	DollarsPerMonth float64    `json:"dollarsPerMonth"` // list price of S3 Standard in us-east-1 for Bytes; 0 of a directory
	First           int64      `json:"first,omitempty"` // time of the first sample, with Columns
	Last            int64      `json:"last,omitempty"`
	Columns         *Columns   `json:"columns,omitempty"`
}

// Level is what all windows of a level hold. The level of segments is "segment"; their series and
// samples are not known without reading them.
type Level struct {
	Level   string `json:"level"`
	Objects int    `json:"objects"`
	Bytes   int64  `json:"bytes"`
	Samples int64  `json:"samples"`
}

// Window is what one window of a level holds.
type Window struct {
	Level
	Start int64 `json:"start"`
	End   int64 `json:"end"` // exclusive
}

// Waiting are objects that were replaced or expired, and may still be in the store.
type Waiting struct {
	Segments int   `json:"segments"`
	Blocks   int   `json:"blocks"`
	Since    int64 `json:"since,omitempty"` // when the first of them was replaced
}

// Deletion is a tombstone of the manifest.
type Deletion struct {
	ID        string `json:"id"`
	Requested int64  `json:"requested"`
	Selector  string `json:"selector"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`     // inclusive
	Objects   int    `json:"objects"` // live objects that it is not applied to yet; readers apply it
}

// segment is the level of segments.
const segment = "segment"

// Of describes a snapshot of all times.
func Of(s catalog.Snapshot) Inventory {
	out := Inventory{Generation: s.Manifest.Generation, Levels: []Level{}, Windows: []Window{}, Deletions: []Deletion{}}
	if out.Generation > 0 {
		out.Committed = s.Manifest.Time().UnixMilli()
	}
	levels, windows := tally[key.Level, Level]{}, tally[place, Window]{}
	var segments Level
	add := func(l *Level, name string, bytes, samples int64) {
		l.Level, l.Objects, l.Bytes, l.Samples = name, l.Objects+1, l.Bytes+bytes, l.Samples+samples
	}
	for _, x := range s.Segments {
		w := windows.at(place{start: int64(x.Window), end: x.Window.End()})
		add(&w.Level, segment, x.Size, 0)
		add(&segments, segment, x.Size, 0)
		if at := int64(x.Rank.Time()); out.OldestSegment == 0 || at < out.OldestSegment {
			out.OldestSegment = at
		}
	}
	for _, b := range s.Blocks {
		w := windows.at(place{start: int64(b.Window), end: b.Level.End(b.Window), block: true, level: b.Level})
		add(&w.Level, b.Level.String(), b.Bytes, b.Samples)
		add(levels.at(b.Level), b.Level.String(), b.Bytes, b.Samples)
	}
	if segments.Objects > 0 {
		out.Levels = append(out.Levels, segments)
	}
	for _, l := range slices.Sorted(maps.Keys(levels)) {
		out.Levels = append(out.Levels, *levels[l])
	}
	for _, p := range slices.SortedFunc(maps.Keys(windows), place.compare) {
		w := windows[p]
		w.Start, w.End = p.start, p.end
		out.Windows = append(out.Windows, *w)
	}
	for _, l := range out.Levels {
		out.Bytes += l.Bytes
	}
	price := cost.Default().Price(cost.S3Storage)
	out.DollarsPerMonth = price.Dollars(float64(out.Bytes) / bytesOfGB)
	since := func(at int64) {
		if out.Waiting.Since == 0 || at < out.Waiting.Since {
			out.Waiting.Since = at
		}
	}
	for _, c := range s.Manifest.Consumed {
		if c.Gone == 0 {
			out.Waiting.Segments++
			since(c.At)
		}
	}
	for _, r := range s.Manifest.Retired {
		if r.Gone == 0 {
			out.Waiting.Blocks++
			since(r.At)
		}
	}
	for _, t := range s.Manifest.Tombstones {
		d := Deletion{
			ID: t.ID.String(), Requested: int64(t.ID.Time()), Selector: selector(t),
			Start: max(t.MinT, key.MinTime), End: min(t.MaxT, key.MaxTime),
		}
		for _, b := range s.Blocks {
			if t.Covers(b.DeletesThrough) && t.Overlaps(b.MinT, b.MaxT) {
				d.Objects++
			}
		}
		for _, x := range s.Segments {
			if t.Covers(x.DeletesThrough) && t.Overlaps(int64(x.Window), x.Window.End()-1) {
				d.Objects++
			}
		}
		out.Deletions = append(out.Deletions, d)
	}
	return out
}

const bytesOfGB = 1 << 30 // as AWS defines it for storage

// place is a window of a level.
type place struct {
	start, end int64
	block      bool
	level      key.Level
}

func (p place) compare(q place) int {
	depth := func(p place) int {
		if !p.block {
			return -1
		}
		return int(p.level)
	}
	return cmp.Or(cmp.Compare(p.start, q.start), cmp.Compare(depth(p), depth(q)))
}

type tally[K comparable, V any] map[K]*V

func (t tally[K, V]) at(k K) *V {
	if t[k] == nil {
		t[k] = new(V)
	}
	return t[k]
}

// selector writes the matchers of a tombstone as PromQL does.
func selector(t catalog.Tombstone) string {
	ms, err := t.LabelMatchers()
	if err != nil {
		return err.Error() // the manifest was validated when it was read
	}
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.String()
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Columns is what the columns of some blocks take.
type Columns struct {
	Blocks  int      `json:"blocks"` // that were read
	Samples int64    `json:"samples"`
	Bytes   int64    `json:"bytes"`
	Rows    []Column `json:"rows"` // the largest first
}

// Column is the size of a column of one kind of files, as it is stored. Without a name, it is what
// the files have beside named columns: footers, and whole series tables and rollups.
type Column struct {
	File           string  `json:"file"`
	Name           string  `json:"column,omitempty"`
	Bytes          int64   `json:"bytes"`
	BytesPerSample float64 `json:"bytesPerSample"` // of all samples of the blocks; 0 if there are none
}

// ColumnsOf sums the columns of blocks.
func ColumnsOf(metas []*block.Meta) *Columns {
	type id struct{ file, name string }
	out, sums := &Columns{Blocks: len(metas), Rows: []Column{}}, map[id]int64{}
	for _, m := range metas {
		out.Samples += m.Floats + m.Hists
		for _, c := range m.Columns() {
			sums[id{c.File, c.Column}] += c.Bytes
			out.Bytes += c.Bytes
		}
	}
	for k, n := range sums {
		c := Column{File: k.file, Name: k.name, Bytes: n}
		if out.Samples > 0 {
			c.BytesPerSample = float64(n) / float64(out.Samples)
		}
		out.Rows = append(out.Rows, c)
	}
	slices.SortFunc(out.Rows, func(a, b Column) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Name, b.Name))
	})
	return out
}
