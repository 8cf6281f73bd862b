package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"golang.org/x/sync/semaphore"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/prom/appender"
)

const (
	// maxSamples is the number of samples from which transactions are appended, or written to a
	// file, in several parts.
	maxSamples = 50_000
	// maxParallel bounds the samples of the appends at a time, as a number of full parts, and the
	// files that are replayed at a time.
	maxParallel = 8
	// maxAppends bounds the appends at a time. Most of the time of an append is a wait, so that
	// many tenants with few samples each do not wait for one another.
	maxAppends = 256
	// complainEvery is the time between two log entries on refusals.
	complainEvery = time.Minute
	// maxRounds is how often files are stored one after another before transactions no longer wait for
	// those that came meanwhile, on a store that is too slow for that.
	maxRounds = 8
	// maxReplayBytes bounds the files that are read at a time.
	maxReplayBytes = 16 << 20
)

// append appends transactions and returns the parts for which that failed.
func (q *Spool) append(txs []*appender.Transaction) (failed [][]*appender.Transaction) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	room := semaphore.NewWeighted(maxParallel * maxSamples)
	for _, part := range parts(txs) {
		weight := int64(min(max(samplesOf(part), maxParallel*maxSamples/maxAppends), maxParallel*maxSamples))
		_ = room.Acquire(context.Background(), weight) // appends end
		if q.down.Load() {                             // another part failed meanwhile
			room.Release(weight)
			mu.Lock()
			failed = append(failed, part)
			mu.Unlock()
			continue
		}
		wg.Go(func() {
			defer room.Release(weight)
			ctx, cancel := context.WithTimeout(q.ctx, q.set.Patience)
			defer cancel()
			var got taken
			size := bytesOf(part) + int64(samplesOf(part))*remotewrite.CostFloat
			refused, err := q.sink.Append(ctx, part[0].Tenant, size, func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				return got.see(remotewrite.Collect(g, rules, room, appender.Collect(part)))
			})
			q.note(part[0].Tenant, refused)
			switch {
			case err == nil && refused != nil && got.none:
				q.met.dropped.Add(float64(samplesOf(part)))
				return
			case err == nil:
				q.met.stored.Add(float64(got.samples))
				return
			}
			q.met.failed.Inc()
			if !q.down.Swap(true) {
				q.logger.Error("samples cannot be stored and wait on disk", "dir", q.set.Dir, "err", err)
			}
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, part)
		})
	}
	wg.Wait()
	return failed
}

// note counts a refusal. It is logged once in a while, because every scrape may repeat it.
func (q *Spool) note(tenant string, refused error) {
	if refused == nil {
		return
	}
	q.met.refused.Inc()
	now := time.Now().UnixMilli()
	if last := q.complained.Load(); now-last >= complainEvery.Milliseconds() && q.complained.CompareAndSwap(last, now) {
		q.logger.Warn("a part of the scraped samples, or of the results of rules, was refused; promlake_queue_refused_appends_total counts further refusals", "tenant", tenant, "err", refused)
	}
}

// taken describes what the store took of an append.
type taken struct {
	none    bool // none of the samples could be read, for example for want of memory
	samples int
}

// see records what was read.
func (t *taken) see(b *remotewrite.Batch, err error) (*remotewrite.Batch, error) {
	t.none = err != nil
	if err == nil {
		t.samples = len(b.Floats) + len(b.Hists)
	}
	return b, err
}

// parts divides transactions into parts of one tenant and of about maxSamples. The transactions of
// a tenant stay in their order; txs is sorted by tenant.
func parts(txs []*appender.Transaction) (out [][]*appender.Transaction) {
	slices.SortStableFunc(txs, func(a, b *appender.Transaction) int { return cmp.Compare(a.Tenant, b.Tenant) })
	n, from := 0, 0
	for i, t := range txs {
		if i > from && (t.Tenant != txs[from].Tenant || n > 0 && n+len(t.Samples) > maxSamples) {
			out, from, n = append(out, txs[from:i]), i, 0
		}
		n += len(t.Samples)
	}
	return append(out, txs[from:])
}

func samplesOf(txs []*appender.Transaction) (n int) {
	for _, t := range txs {
		n += len(t.Samples)
	}
	return n
}

// spill writes transactions to the directory. What cannot be written is lost, logged and counted.
func (q *Spool) spill(txs []*appender.Transaction) {
	for _, part := range parts(txs) {
		n := samplesOf(part)
		message, err := appender.Encode(part)
		if err == nil {
			err = q.disk.put(record{tenant: part[0].Tenant, samples: n, message: message})
		}
		if err != nil {
			q.met.dropped.Add(float64(n))
			q.logger.Error("samples are lost: the store is away, and the queue on disk cannot take them", "samples", n, "err", err)
			continue
		}
		q.met.spilled.Add(float64(n))
		signal(q.filled)
	}
}

// replay appends the files of the directory, the oldest first, until the spool is closed.
func (q *Spool) replay() {
	defer q.ended.Done()
	pause, rounds := firstPause, 0
	for {
		files := q.disk.oldest(maxParallel, maxReplayBytes)
		if len(files) == 0 {
			rounds = 0
			select {
			case <-q.filled:
			case <-q.ctx.Done():
				return
			}
			// The store was away a moment ago.
			if smithytime.SleepWithContext(q.ctx, firstPause) != nil {
				return
			}
			continue
		}
		if q.replayed(files) {
			rounds++
			q.recovered(rounds < maxRounds)
			pause = firstPause
			continue
		}
		if smithytime.SleepWithContext(q.ctx, pause) != nil {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// fewLeft reports whether the directory has files, but so few that transactions wait for them, and
// are written to the directory: so the samples of each series are stored in the order of their
// times, on which readers rely that keep the last ones in memory.
func (q *Spool) fewLeft() bool {
	n := q.disk.count()
	return 0 < n && n <= maxParallel
}

// recovered lets transactions go to the store again, because an append of files has succeeded. With
// wait, they wait for few that are left.
func (q *Spool) recovered(wait bool) {
	if wait && q.fewLeft() || !q.down.Swap(false) {
		return
	}
	if wait && q.fewLeft() { // written since: run sets down after that, or it is set here
		q.down.Store(true)
		return
	}
	q.logger.Info("samples can be stored again", "bytes on disk", q.disk.size())
}

// replayed appends files and removes them: one after another if they are all that are left, else at
// once. It reports whether all of them are gone.
func (q *Spool) replayed(files []entry) bool {
	ctx, cancel := context.WithTimeout(q.ctx, replayTimeout)
	defer cancel()
	errs := make([]error, len(files))
	if q.fewLeft() {
		for i, f := range files {
			if errs[i] = q.replayFile(ctx, f); errs[i] != nil {
				break
			}
		}
	} else {
		var wg sync.WaitGroup
		for i, f := range files {
			wg.Go(func() { errs[i] = q.replayFile(ctx, f) })
		}
		wg.Wait()
	}
	err := errors.Join(errs...)
	if err != nil && q.ctx.Err() == nil {
		q.logger.Warn("samples on disk cannot be stored yet", "files", len(files), "err", err)
	}
	return err == nil
}

func (q *Spool) replayFile(ctx context.Context, f entry) error {
	r, err := q.disk.read(f)
	switch {
	case errors.Is(err, errDamaged):
		q.met.damaged.Inc()
		q.logger.Error("a file of the queue is damaged; it is kept under the suffix "+damagedSuffix, "err", err)
		return q.disk.remove(f, damagedSuffix)
	case err != nil:
		return err
	}
	var got taken
	refused, err := q.sink.Append(ctx, r.tenant, int64(len(r.message))+int64(r.samples)*remotewrite.CostFloat,
		func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return got.see(remotewrite.Decode(remotewrite.V2, r.message, g, rules, room))
		})
	if err != nil {
		q.met.failed.Inc()
		return fmt.Errorf("append file %d: %w", f.number, err)
	}
	if refused != nil {
		q.met.refused.Inc()
		q.logger.Warn("samples on disk were refused", "file", f.number, "whole", got.none, "err", refused)
		if got.none {
			return q.disk.remove(f, refusedSuffix)
		}
	}
	q.met.stored.Add(float64(got.samples))
	return q.disk.remove(f, "")
}
