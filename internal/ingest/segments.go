package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/recent"
)

// segmentWriter makes segments of a tenant's batches.
type segmentWriter struct {
	tenant string
	store  objstore.Store
	now    func() time.Time
	met    *metrics

	recent *recent.Segments // keeps what is stored

	mu     sync.Mutex      // guards what encoding uses: writer, view, labels, and the orders of the generations
	writer *segment.Writer // nil: encode makes it
	view   *series.View    // of the last table
	labels *recent.Labels  // the same for segments that are kept
}

// encoded is a segment that waits for its put.
type encoded struct {
	key     key.Segment
	file    []byte // of files
	info    segment.Info
	content *recent.Segment // nil: it is not kept
}

// files and sorters are reusable memory for segments.
var (
	files   = memory.NewPool(spareFiles, func(f []byte) int { return cap(f) })
	sorters = memory.NewPool(4*runtime.GOMAXPROCS(0), func(s *group.Sorter) int { return s.Room() })
)

// spareFiles is the number of files whose memory is kept. Several tenants may write at a time.
const spareFiles = 32

// encode makes one segment for each table (mostly one) and window of the batches. name returns
// what makes a key unique: an identifier, and whether the samples came through the queue. After a
// panic, nothing that it may have left half done is used again: the writer is a new one, and the
// generation is defective.
func (w *segmentWriter) encode(bs []*remotewrite.Batch, name func() (id ulid.ULID, queued bool)) (out []encoded, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writer == nil {
		if w.writer, err = segment.NewWriter(); err != nil {
			return nil, err
		}
	}
	samples := 0
	for _, b := range bs {
		samples += len(b.Floats)
	}
	sorter, ok := sorters.Get(samples)
	if !ok {
		sorter = new(group.Sorter)
	}
	var g *remotewrite.Series
	defer func() {
		if !errors.Is(err, telemetry.ErrPanic) {
			sorters.Put(sorter)
			return
		}
		w.writer, w.view, w.labels = nil, nil, nil
		g.Defective.Store(true)
	}()
	defer telemetry.Recover(&err)
	for from := 0; from < len(bs); {
		// Requests that were decoded before and after a rotation may share a group.
		g = bs[from].Generation.Series
		if g.Defective.Load() {
			return nil, telemetry.ErrPanic
		}
		to := from + 1
		for to < len(bs) && bs[to].Generation.Series == g {
			to++
		}
		w.look(g.Table)
		g.Order.Extend(w.view)
		for _, window := range group.Windows(bs[from:to], w.now().UnixMilli()) {
			rows := sorter.Rows(window, w.view, &g.Order)
			g.Use(rows.Rows)
			file, info, err := w.writer.Write(rows, &g.Repeats)
			if err != nil {
				return nil, fmt.Errorf("encode segment: %w", err)
			}
			id, queued := name()
			kept, _ := files.Get(len(file))
			kept = append(kept[:0], file...) // file is valid until the next segment is encoded
			out = append(out, encoded{key.Segment{Tenant: w.tenant, Window: window.Start, ID: id, Queued: queued}, kept, info, w.recent.Of(rows, w.labels)})
		}
		from = to
	}
	return out, nil
}

// next returns the generation after g.
func (w *segmentWriter) next(g *remotewrite.Generation) *remotewrite.Generation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return g.Next(newSeed())
}

// look brings the view up to date. The caller holds w.mu.
func (w *segmentWriter) look(t *series.Table) {
	t.RLock()
	defer t.RUnlock()
	if t.Viewed(w.view) {
		return
	}
	view := t.View()
	if w.view != nil && view.SameTable(w.view) {
		w.labels.Extend(&view)
	} else {
		w.labels = recent.NewLabels(&view)
	}
	w.view = &view
}

// maxParallelPuts bounds the segments that a flush writes at the same time.
const maxParallelPuts = 8

// put writes segments. It is the one place where ingest writes to the store: it returns nil only
// when all segments are durable, and no put is under way any more when it returns.
func (w *segmentWriter) put(ctx context.Context, all []encoded) (err error) {
	defer telemetry.Recover(&err)
	err = telemetry.Each(ctx, maxParallelPuts, all, func(ctx context.Context, _ int, e encoded) error {
		if _, err := w.store.Put(ctx, e.key.String(), bytes.NewReader(e.file), objstore.Condition{IfAbsent: true}); err != nil {
			return fmt.Errorf("put segment: %w", err)
		}
		w.met.segments.Inc()
		w.met.segmentBytes.Add(float64(len(e.file)))
		w.recent.Put(e.key.String(), int64(len(e.file)), e.content)
		w.recent.PutFooter(e.key.String(), int64(len(e.file)), e.info)
		files.Put(e.file) // after an error the store may still read it
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range all {
		w.recent.Stored(w.tenant, e.key.String(), e.content)
	}
	return nil
}

// idSource makes ULIDs. The milliseconds of those that next returns ascend strictly within the
// process, even when the clock stands or steps back: of two segments of one process that the store
// got in one tick of its clock, the later one has the higher rank, which counts the milliseconds
// but not all of the entropy.
type idSource struct {
	mu     sync.Mutex
	random io.Reader
	last   uint64 // ms
}

func newIDSource(r io.Reader) *idSource { return &idSource{random: r} }

// at returns a ULID of this time.
func (s *idSource) at(t time.Time) ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draw(ulid.Timestamp(t))
}

func (s *idSource) next(now time.Time) ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, ulid.Timestamp(now))
	return s.draw(s.last)
}

// draw returns a random ULID of this time (ms). The caller holds s.mu.
func (s *idSource) draw(ms uint64) ulid.ULID {
	id, err := ulid.New(ms, s.random)
	if err != nil {
		panic(fmt.Sprintf("make an identifier: %v", err)) // crypto/rand does not fail, and the queue's times fit
	}
	return id
}
