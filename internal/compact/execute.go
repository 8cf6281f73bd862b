package compact

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// mergeSeriesBytes is the memory that a merge leaves to the collector for each series, about.
const mergeSeriesBytes = 160

// namedSources is the number of sources that meta.json names at most, for people: half of them the
// oldest, half of them the newest.
const namedSources = 64

// merge runs a Merge or Cut job: it opens the sources, writes their block and commits it.
func (s *Stage) merge(ctx context.Context, r *Result, progress Progress) (err error) {
	snap, known, now, err := s.begin(ctx, r.Tenant, &r.Job)
	if err != nil {
		return err
	}
	srcs, err := plan.Resolve(&snap, &r.Job)
	if err != nil {
		return s.explain(ctx, r.Tenant, &r.Job, err)
	}
	m := &snap.Manifest
	r.begun = now
	id, err := s.ids.next(now)
	if err != nil {
		return err
	}
	in, err := s.open(ctx, r.Tenant, &r.Job, srcs, snap.Tombstones)
	defer func() { err = errors.Join(err, in.Close()) }()
	if errors.Is(err, errSeriesMemory) {
		// The job turns out to have too many series: a split takes its place.
		part := max(1, int64(len(in.taken))) // of the sources, this many fill the memory
		need := in.into.Table.Bytes() / part * int64(r.Job.Sources.Len())
		n := 2
		for n < plan.MaxSlices && max(need, in.into.Table.Bytes())/int64(n) > s.set.MemoryBytes/2 {
			n *= 2
		}
		r.Job.Kind, r.Job.Slice = plan.Split, catalog.Slice{Of: n}
		return s.split(ctx, r, r.begun)
	}
	if err != nil {
		return s.explain(ctx, r.Tenant, &r.Job, err)
	}
	if r.Job.Kind == plan.Merge {
		r.Job.Sources = plan.SourcesOf(in.taken)
	}
	w := &output{
		stage: s, ctx: ctx, in: in, tombs: snap.Tombstones, job: &r.Job, progress: s.progress(r, in, progress),
		files: blockio.NewWriter(ctx, s.store, key.Block{Tenant: r.Tenant, Level: r.Job.Level, Window: r.Job.Window, ID: id}, s.set.TempDir),
		entry: catalog.Block{
			Level: r.Job.Level, Window: r.Job.Window, ID: id, Rank: rank(m, &r.Job, in),
			DeletesThrough: m.LastTombstone, MaxT: -1, Slice: r.Job.Slice,
		},
	}
	memory.Collect(mergeSeriesBytes * int64(in.into.View().Len())) // what others left, before the merge adds to it
	stats, err := w.write()
	r.Read, r.Deleted, r.BytesRead, r.total = stats.Read, stats.Deleted, in.bytes, in.samples
	if err != nil {
		s.cleanup(ctx, w.files)
		return s.explain(ctx, r.Tenant, &r.Job, err)
	}
	r.Written, r.BytesWritten = stats.Samples, w.files.Bytes()
	memory.Collect(mergeSeriesBytes * stats.Series) // before queries load the block
	// If the job turns out to be pointless before the commit is attempted, the block is removed at
	// once. If the commit fails, the block is left to garbage collection, because the commit may
	// have taken effect.
	v, err := catalog.Refresh(ctx, s.store, r.Tenant, known)
	if err == nil {
		_, err = w.change(v.Manifest, v.Time()) // no job is too old by the time of a manifest
	}
	if err != nil {
		s.cleanup(ctx, w.files)
		return err
	}
	s.note(r, w)
	if err := s.commit(ctx, r.Tenant, v, w.change); err != nil {
		return err
	}
	if r.Job.Kind == plan.Merge { // other slices of a split still read its sources
		for _, id := range r.Job.Sources.Segments {
			s.set.Recent.Remove(id.Key(r.Tenant).String())
		}
	}
	return nil
}

// rank returns the rank of a job's block, which is that of its newest source. All slices of a split
// have the rank that the first one recorded, because the version before this one computed the ranks
// of segments differently.
func rank(m *catalog.Manifest, job *plan.Job, in *opened) ulid.ULID {
	for _, sp := range m.Splits {
		for _, b := range sp.Done {
			if job.Kind == plan.Cut && sp.ID == job.Split && b.Bytes > 0 {
				return b.Rank
			}
		}
	}
	return in.taken[len(in.taken)-1].Rank
}

// cleanup removes a block that can never be committed. What it fails to remove is garbage.
func (s *Stage) cleanup(ctx context.Context, files *blockio.Writer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := files.Remove(ctx); err != nil {
		s.log.WarnContext(ctx, "cannot remove a block that was not committed; garbage collection will", "error", err)
	}
}

// progress returns the function that a merge calls with the number of samples that it has read.
func (s *Stage) progress(r *Result, in *opened, p Progress) func(int64) {
	if p == nil {
		return nil
	}
	tenant, job := r.Tenant, r.Job
	return func(done int64) { p(tenant, job, done, max(in.samples, done)) }
}

// output writes one block.
type output struct {
	stage    *Stage
	ctx      context.Context
	in       *opened
	tombs    []catalog.Tombstone // of the job's window
	job      *plan.Job
	files    *blockio.Writer
	entry    catalog.Block
	progress func(int64)
}

// write merges the sources into the files of the block and fills entry. If there is nothing to
// write, it leaves no file.
func (w *output) write() (stats merge.Stats, err error) {
	defer func() { err = errors.Join(err, w.files.Close()) }()
	view := w.in.into.View()
	w.in.into.Table.Seal() // no source is opened any more
	to, err := blockio.NewSink(w.files, view, block.Options{Level: w.job.Level, HasST: w.in.hasST, Floats: w.in.samples, Encoders: w.stage.set.Encoders}, !w.stage.set.WithoutRollups)
	if err != nil {
		return stats, err
	}
	if stats, err = merge.Merge(w.ctx, &w.in.into, w.tombs, w.in.merge, to, w.progress); err != nil {
		return stats, err
	}
	metadata := w.in.metadata.Sorted()
	if w.job.Slice.Index > 0 { // the first slice has it
		metadata = nil
	}
	if stats.Series == 0 && len(metadata) == 0 {
		return stats, nil
	}
	if len(metadata) > 0 {
		if err := to.Metadata(metadata); err != nil {
			return stats, err
		}
	}
	var sources []string
	for i, s := range w.in.taken {
		if half := namedSources / 2; i >= half && i < len(w.in.taken)-half {
			continue
		}
		if s.IsSegment {
			sources = append(sources, s.Segment.Key(w.files.Block().Tenant).String())
		} else {
			sources = append(sources, s.Block.Key(w.files.Block().Tenant).Prefix())
		}
	}
	return stats, to.Close(&w.entry, sources)
}

// change is the transition that makes the block live.
func (w *output) change(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
	if w.job.Kind == plan.Cut {
		return m.SliceDone(now, w.job.Split, w.entry)
	}
	if w.entry.Bytes == 0 {
		return m.Replace(now, w.job.Sources, nil)
	}
	return m.Replace(now, w.job.Sources, []catalog.Block{w.entry})
}
