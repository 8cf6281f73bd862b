// Package bulk writes histories from outside of the store, such as the blocks of a Prometheus,
// straight into blocks, beside writers and compactors that use the tenant meanwhile.
//
//	records ─▶ plan: units ─▶ scan, merge ─▶ files of the block ─▶ manifest ─▶ record
//
// A unit is the samples of a part of the series in one window. It becomes one block, which is live
// from the commit of the manifest on (catalog.Add). This commit also puts into the manifest which
// inputs the block holds. The record, an object of its own, says the same. Only when it is written
// does a later commit take the import out of the manifest. So wherever an import is cut short, and
// whatever becomes of the block (compaction, deletion, retention), the next import sees what was
// imported.
//
// The rank of an imported block is lower than that of everything that was written to the store.
// Samples that the store has therefore win over imported ones of the same series and time. Of two
// imported ones, that of the later input wins.
package bulk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Unit is the work for one block.
type Unit struct {
	Level   key.Level
	Window  key.Window
	Slice   catalog.Slice
	Inputs  []int // of the plan, in the order of Written
	Samples int64 // about
}

func (u *Unit) from() int64 { return int64(u.Window) }
func (u *Unit) to() int64   { return u.Level.End(u.Window) }

// String describes the unit.
func (u Unit) String() string {
	s := u.Level.String() + " " + u.Window.String()
	if u.Slice.Of > 1 {
		s += " slice " + u.Slice.String()
	}
	return s
}

// Plan is what is left to import. The same past, inputs and time give the same plan.
type Plan struct {
	Inputs  []Input // by Written, then ID
	Units   []Unit  // in the order of time
	Expired int64   // samples in windows that are past the retention, about
	Present int64   // samples that records name as imported, about
	Lost    int     // imports of these inputs whose blocks are in quarantine, unless Settings.Restore

	past Past
	lost []Record // that are done again
}

// Samples returns about how many samples the units have.
func (p *Plan) Samples() (n int64) {
	for i := range p.Units {
		n += p.Units[i].Samples
	}
	return n
}

// planner is one call of MakePlan.
type planner struct {
	Plan
	set   *Settings
	now   time.Time
	known index
}

// MakePlan plans the import of inputs into a tenant with a past, at a time of the store's clock.
// Windows that are closed become blocks of the highest level that Settings allow; a window that is
// open becomes a part.
func MakePlan(set Settings, now time.Time, inputs []Input, past Past) (Plan, error) {
	p := &planner{set: &set, now: now}
	p.past = past
	kept, lost := past.divide()
	p.known, p.lost = indexOf(kept), lost
	if !set.Restore {
		p.Lost = count(inputs, lost, p.known)
		p.known, p.lost = indexOf(kept, lost), nil
	}
	p.Inputs = slices.Clone(inputs)
	slices.SortFunc(p.Inputs, func(a, b Input) int { return cmp.Or(a.Written.Compare(b.Written), cmp.Compare(a.ID, b.ID)) })
	windows := map[key.Window]bool{}
	for i, in := range p.Inputs {
		if i > 0 && in.ID == p.Inputs[i-1].ID {
			return Plan{}, fmt.Errorf("plan import: input %s is there twice", in.ID)
		}
		if in.MinT < key.MinTime || in.MaxT > key.MaxTime {
			return Plan{}, fmt.Errorf("plan import: input %s has times from %d to %d ms, want %d to %d", in.ID, in.MinT, in.MaxT, key.MinTime, key.MaxTime)
		}
		for w := set.Level.WindowOf(in.MinT); int64(w) <= in.MaxT; w = key.Window(set.Level.End(w)) {
			windows[w] = true
		}
	}
	for _, w := range slices.Sorted(maps.Keys(windows)) {
		p.window(set.Level, w)
	}
	return p.Plan, nil
}

// count returns how many of the lost records name one of the inputs and were not restored.
func count(inputs []Input, lost []Record, kept index) (n int) {
	for _, r := range lost {
		if slices.ContainsFunc(inputs, func(in Input) bool {
			return r.names(in.ID) && !slices.ContainsFunc(kept[in.ID], func(k Record) bool {
				return k.Overlaps(r.Level, r.Window) && k.Slice.Shares(r.Slice)
			})
		}) {
			n++
		}
	}
	return n
}

// window plans one window.
func (p *planner) window(l key.Level, w key.Window) {
	u := Unit{Level: l, Window: w}
	all, n := p.overlapping(u.from(), u.to())
	switch {
	case len(all) == 0:
	case u.to() <= p.before():
		p.Expired += n
	case l > key.L2h && (p.open(&u) || p.partly(&u, all)):
		for at := u.from(); at < u.to(); at += (l - 1).Millis() {
			p.window(l-1, key.Window(at))
		}
	default:
		if p.open(&u) {
			u.Level = key.Part
		}
		p.slices(u, all)
	}
}

// slices plans the slices of a window into which earlier imports divided it.
func (p *planner) slices(u Unit, all []int) {
	of := 1
	for _, in := range all {
		for _, r := range p.known[p.Inputs[in].ID] {
			if r.Window == u.Window && r.Level.Millis() == u.Level.Millis() {
				of = max(of, r.Slice.Of)
			}
		}
	}
	for i := range of {
		s := u
		if of > 1 {
			s.Slice = catalog.Slice{Index: i, Of: of}
		}
		for _, in := range all {
			n := p.Inputs[in].within(u.from(), u.to()) / int64(of)
			if slices.ContainsFunc(p.known[p.Inputs[in].ID], func(r Record) bool { return r.has(p.Inputs[in].ID, &s) }) {
				p.Present += n
				continue
			}
			s.Inputs, s.Samples = append(s.Inputs, in), s.Samples+n
		}
		if len(s.Inputs) > 0 {
			p.Units = append(p.Units, s)
		}
	}
}

// overlapping returns the inputs with samples in [from, to), and about how many these are.
func (p *planner) overlapping(from, to int64) (all []int, n int64) {
	for i := range p.Inputs {
		if p.Inputs[i].overlaps(from, to) {
			all = append(all, i)
			n += p.Inputs[i].within(from, to)
		}
	}
	return all, n
}

// before returns the time before which windows must end to be past the retention.
func (p *planner) before() int64 {
	if p.set.Retention == 0 {
		return key.MinTime
	}
	return p.now.Add(-p.set.Retention).UnixMilli()
}

// open reports whether the unit's window has not ended for long enough to be compacted whole.
func (p *planner) open(u *Unit) bool {
	return p.now.Before(time.UnixMilli(u.to()).Add(p.set.WindowDelay))
}

// partly reports whether a shorter window in that of the unit was imported from one of the inputs,
// as happens while the window is open.
func (p *planner) partly(u *Unit, inputs []int) bool {
	return slices.ContainsFunc(inputs, func(i int) bool {
		return slices.ContainsFunc(p.known[p.Inputs[i].ID], func(r Record) bool {
			return int64(r.Window) >= u.from() && r.Level.End(r.Window) <= u.to() && r.Level.Millis() < u.Level.Millis()
		})
	})
}

// rankShift makes the times of ranks, which are those of inputs, lower than the time of any write
// to a store: they are in 1970.
const rankShift = 8

// rank identifies what a unit imports, whatever its slice: the time of its newest input, and a hash
// of its window and of the IDs of its inputs.
func (p *Plan) rank(u *Unit) (rank ulid.ULID, inputs []string) {
	h := sha256.New()
	for _, i := range u.Inputs {
		inputs = append(inputs, p.Inputs[i].ID)
	}
	slices.Sort(inputs)
	for _, id := range inputs {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(id))))
		h.Write([]byte(id))
	}
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(u.from())))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(u.to())))
	copy(rank[6:], h.Sum(nil))
	newest := p.Inputs[u.Inputs[len(u.Inputs)-1]].Written.UnixMilli()
	_ = rank.SetTime(uint64(max(newest, 0)) >> rankShift) // fits after the shift
	return rank, inputs
}

// deletesThrough returns the tombstones that do not apply to a unit's block: those before the
// import, or before the first import of what is done again.
func (p *Plan) deletesThrough(u *Unit, last ulid.ULID) ulid.ULID {
	for _, r := range p.lost {
		if r.Overlaps(u.Level, u.Window) && slices.ContainsFunc(u.Inputs, func(i int) bool { return r.names(p.Inputs[i].ID) }) && r.DeletesThrough.Compare(last) < 0 {
			last = r.DeletesThrough
		}
	}
	return last
}

// Input is a part of a history, such as a block of Prometheus.
type Input struct {
	// ID identifies the samples: inputs with equal IDs have the same ones.
	ID      string
	Written time.Time // of inputs with a sample of the same series and time, the latest one wins
	MinT    int64     // ms, inclusive, of all samples
	MaxT    int64     // ms, inclusive
	Samples int64     // about
	// Open makes the samples readable. It is called once; Close follows.
	Open func(ctx context.Context) (Opened, error)
}

// Opened is an input that can be read. Scan may be called concurrently.
type Opened interface {
	// Scan finds the series with samples in [from, to) (ms) that keep wants. keep takes labels by
	// name, without empty values.
	Scan(ctx context.Context, from, to int64, keep Keep) (Rows, error)
	Close() error
}

// Keep returns the reference of a label set, whose slice it does not keep, and whether it is
// wanted. If so, Rows needs this many bytes of memory for it.
type Keep func(lset []series.Label, bytes int64) (series.Ref, bool, error)

// Rows are the series that Scan found.
type Rows = merge.Rows

// overlaps reports whether the input may have samples in [from, to).
func (in *Input) overlaps(from, to int64) bool { return in.MinT < to && in.MaxT >= from }

// within estimates the number of samples in [from, to).
func (in *Input) within(from, to int64) int64 {
	all := in.MaxT - in.MinT + 1
	part := min(in.MaxT+1, to) - max(in.MinT, from)
	if part <= 0 || all <= 0 {
		return 0
	}
	return max(1, int64(float64(in.Samples)*float64(part)/float64(all)))
}
