// Package plan decides what a compactor does. It computes values from values, and reads and writes
// no object: Jobs returns the jobs of a snapshot, StateOf sums the snapshot up, and Resolve finds
// the sources of a job in a later snapshot.
package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// planner is one call of Jobs.
type planner struct {
	set  *Policy
	now  time.Time
	snap *catalog.Snapshot
	jobs []Job

	splits []span // windows of the splits under way
	before int64  // ms: what is older is past its retention
}

// Jobs returns the jobs that bring a tenant's objects nearer to one 24h block a day. It is pure and
// deterministic: the same snapshot (of all of time) and the same time (of the store's clock, before
// the snapshot was taken) give the same jobs in the same order. No two jobs share a source, and
// each may run whether or not the others do. If the plan is empty, there is nothing to do now.
func Jobs(policy Policy, now time.Time, snap catalog.Snapshot) []Job {
	p := &planner{set: &policy, now: now, snap: &snap}
	all := live(&snap)
	p.slices()
	// Plan the removal of tombstones that have nothing left to delete, now or later. A segment of
	// the queue can be covered without being sealed; once a tombstone is no longer pending, the
	// listing has all such segments.
	var ids []ulid.ULID
	for _, t := range p.snap.Manifest.Tombstones {
		covers := func(s Source) bool {
			return s.IsSegment && t.Covers(s.Through) && t.Overlaps(s.span.from, s.span.to-1)
		}
		if !p.snap.Manifest.Pending(p.now, t) && !slices.ContainsFunc(all, covers) {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) > 0 {
		p.jobs = append(p.jobs, Job{Kind: Drop, Drop: ids, Why: "nothing is left that they apply to"})
	}
	p.expire(all)
	for _, day := range days(all) {
		stay := slices.DeleteFunc(slices.Clone(day), func(s Source) bool { return p.expired(&s) })
		p.window(key.L24h, key.L24h.WindowOf(day[0].span.from), stay, day, false)
	}
	for i := range p.jobs {
		p.jobs[i].Planned = Later(now, snap.Manifest.Time())
	}
	return p.jobs
}

// Later returns the later of two times. Commits and jobs judge a job's age by the manifest's time
// if that is ahead of the clock.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// days groups sources by the 24h window that holds them, in the order of time, each group by rank.
// Windows nest, so no source overlaps another day.
func days(all []Source) [][]Source {
	byDay := map[key.Window][]Source{}
	for _, s := range all {
		d := key.L24h.WindowOf(s.span.from)
		byDay[d] = append(byDay[d], s)
	}
	return slices.SortedFunc(maps.Values(byDay), func(a, b []Source) int {
		return cmp.Compare(key.L24h.WindowOf(a[0].span.from), key.L24h.WindowOf(b[0].span.from))
	})
}

// settled reports whether the listing has every segment that is older than the source. A block can
// be too new for it as well, because the manifest is read after the listing.
func (p *planner) settled(s *Source) bool { return p.older(s, p.set.SettleDelay) }

// older reports whether the newest write of the source was at least d ago.
func (p *planner) older(s *Source, d time.Duration) bool { return !s.written().After(p.now.Add(-d)) }

// closes returns when WindowDelay has passed since the end of the range.
func (p *planner) closes(r span) time.Time { return time.UnixMilli(r.to).Add(p.set.WindowDelay) }

// add appends a job over sources, by rank.
func (p *planner) add(kind Kind, l key.Level, w key.Window, srcs []Source, why string) *Job {
	j := Job{Kind: kind, Level: l, Window: w, Sources: SourcesOf(srcs), Why: why}
	for i := range srcs {
		j.Bytes += srcs[i].Bytes
		if !srcs[i].IsSegment {
			j.Samples += srcs[i].Block.Samples
		}
	}
	p.jobs = append(p.jobs, j)
	return &p.jobs[len(p.jobs)-1]
}

// Policy bounds what one job takes, and says how long objects wait for theirs. The tags are those
// of package settings. Plans take every field as it is: the stage fills those that are zero.
type Policy struct {
	MemoryBytes     int64 `name:"compactor.memory" type:"bytes" default:"256MiB" min:"1" help:"Memory for the sources of one job. Larger jobs take fewer sources or are split by series." when:"Raise it if jobs are split often. In a function, the default is a third of its memory."`
	MaxSources      int   `name:"compactor.max-sources" default:"64" min:"2" help:"Blocks that one job merges." when:"Lower it if jobs run out of memory or files."`
	MaxSegments     int   `name:"compactor.max-segments" default:"8192" min:"2" help:"Segments that one job merges, if they fit into its memory; 1024 in a function." when:"Lower it if jobs of many segments take too long."`
	MaxJobSamples   int64 `name:"compactor.max-job-samples" placeholder:"N" default:"0" min:"0" help:"Samples above which a job is split by series. 0 is half a million for each second of --compactor.job-timeout." when:"Lower it if jobs end at their timeout."`
	MinPartSegments int   `name:"compactor.min-part-segments" default:"8" min:"2" help:"Segments of an open 2h window that start a merge." when:"Lower it if queries of recent data read too many segments. If not set, 60 in a process with --config.file that compacts; with rules, segments wait there until the oldest is five minutes old, or until they are 512."`
	PartBytes       int64 `name:"compactor.part-bytes" type:"bytes" default:"8MiB" min:"1" help:"Size of a window's segments that starts a merge of fewer than --compactor.min-part-segments." when:"Rarely. If not set, 64MiB in a process with --config.file that compacts."`
	// PartAge, if not 0, starts a merge of the segments of an open window when the oldest is so
	// old, instead of MinPartSegments, for a tenant whose segments take little memory while they
	// wait.
	PartAge time.Duration `kong:"-"`
	// PartFrom is since when such segments were written: if the oldest is from before, the segments
	// are also merged as soon as they are MinPartSegments or have PartBytes.
	PartFrom    time.Time     `kong:"-"`
	SettleDelay time.Duration `name:"compactor.settle-delay" default:"1m" above:"0" help:"Age at which a segment may be merged. In a bucket, it must exceed --ingest.flush-timeout of every writer." when:"Only together with --ingest.settle-delay."`
	WindowDelay time.Duration `name:"compactor.window-delay" default:"10m" above:"0" help:"Time after the end of a window at which it becomes a block." when:"Raise it if much data arrives late."`
	LateDelay   time.Duration `name:"compactor.late-delay" default:"10m" above:"0" help:"Age of the oldest late segment at which late segments are merged into their block." when:"Raise it if late data makes blocks be rewritten too often."`

	Retention       time.Duration            `name:"compactor.blocks-retention-period" basic:"" type:"period" placeholder:"PERIOD" default:"0" min:"0" help:"How long samples are kept, such as 30d. 0 keeps them forever." when:"Set it to bound the cost of storage."`
	TenantRetention map[string]time.Duration `name:"compactor.tenant-retention" basic:"" type:"period" placeholder:"TENANT=PERIOD" help:"A tenant's own retention, such as team-a=30d. 0 is forever. Repeatable." when:"Set it for tenants whose data is worth more or less than that of others."`
}

// Kind is the kind of a job.
type Kind uint8

// The kinds of jobs.
const (
	Merge  Kind = iota // replace sources by one block
	Split              // record that sources are to be merged by slices
	Cut                // merge one slice of a recorded split
	Expire             // drop sources that are past their retention
	Drop               // forget tombstones that apply to nothing any more
)

var kindNames = [...]string{"merge", "split", "slice", "expire", "drop"}

// String names the kind, as metrics and messages do.
func (k Kind) String() string { return kindNames[k] }

// ParseKind is the inverse of Kind.String.
func ParseKind(name string) (Kind, error) {
	kind := slices.Index(kindNames[:], name)
	if kind < 0 {
		return 0, fmt.Errorf("kind %q is not known", name)
	}
	return Kind(kind), nil
}

// Job is one step of compaction, independent of every other job of its plan.
type Job struct {
	Kind    Kind
	Level   key.Level       // of the result: Merge, Split, Cut
	Window  key.Window      // start of that level's window
	Sources catalog.Sources // Merge, Split, Cut, Expire; by rank, oldest first
	Slice   catalog.Slice   // Cut: which; Split: Of
	Split   ulid.ULID       // Cut: the split's identifier
	Drop    []ulid.ULID     // Drop: tombstones
	Planned time.Time       // by the later of the clock and the manifest that it was planned from
	Why     string          // the rule that made it

	Samples int64 // estimate, of the sources that are blocks
	Bytes   int64 // of the sources
}

// String describes the job in one line.
func (j Job) String() string {
	var b strings.Builder
	b.WriteString(j.Kind.String())
	switch j.Kind {
	case Drop:
		fmt.Fprintf(&b, " %s", count(len(j.Drop), "tombstone"))
	case Expire:
	case Cut:
		fmt.Fprintf(&b, " %d of %d, %s %s", j.Slice.Index, j.Slice.Of, j.Level, j.Window)
	case Split:
		fmt.Fprintf(&b, " %s %s into %d", j.Level, j.Window, j.Slice.Of)
	default:
		fmt.Fprintf(&b, " %s %s", j.Level, j.Window)
	}
	if j.Kind != Drop {
		fmt.Fprintf(&b, " of %s, %s (%d bytes)", count(len(j.Sources.Segments), "segment"), count(len(j.Sources.Blocks), "block"), j.Bytes)
	}
	return b.String() + ": " + j.Why
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Windowed reports whether the job is about one window.
func (j *Job) Windowed() bool { return j.Kind == Merge || j.Kind == Split || j.Kind == Cut }

// Young returns a conflict if the job was planned too long ago: once its sources are replaced,
// deleted and forgotten, nothing shows that they were. now is a time of the store's clock, as
// Planned is.
func (j *Job) Young(now time.Time) error {
	if age := now.Sub(j.Planned); age > catalog.MaxJobAge {
		return fmt.Errorf("planned %s ago, the limit is %s: %w", age, catalog.MaxJobAge, catalog.ErrConflict)
	}
	return nil
}
