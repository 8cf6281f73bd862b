package compact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memqueue"
)

// visibility is how long a message is hidden from other workers: a function's time.
const visibility = 15 * time.Minute

// farm is a lake with planners and workers, and a queue between them that delivers in any order.
type farm struct {
	*lake
	set     Settings
	jobs    *memqueue.Queue
	script  memqueue.Script
	stages  byte     // made so far
	counts  sync.Map // results of workers by kind and outcome, and deaths
	ticking []*Stage
}

func newFarm(t *testing.T, set Settings, planners int) *farm {
	f := &farm{lake: newLake(t), set: set}
	f.jobs = memqueue.New(memqueue.Settings{Now: f.clock, Faults: f.script.Next})
	for range planners {
		f.ticking = append(f.ticking, f.next())
	}
	return f
}

// next returns a stage of a process of its own.
func (f *farm) next() *Stage {
	f.stages++
	return f.stage(f.set, f.stages)
}

// tick lets all planners plan at once, and returns how many jobs they sent.
func (f *farm) tick() (sent int) {
	var all sync.WaitGroup
	reports := make([]Report, len(f.ticking))
	for i, s := range f.ticking {
		all.Go(func() {
			var err error
			if reports[i], err = s.Dispatch(f.t.Context(), f.jobs); err != nil && !errors.Is(err, errFault) {
				f.t.Errorf("dispatch: %v", err)
			}
		})
	}
	all.Wait()
	for _, r := range reports {
		sent += r.Sent
	}
	return sent
}

func (f *farm) count(what ...string) {
	n, _ := f.counts.LoadOrStore(strings.Join(what, " "), new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// counted is how often something happened.
func (f *farm) counted(what string) int64 {
	if n, ok := f.counts.Load(what); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

// worker is a process that does one message.
type worker struct {
	*farm
	stage *Stage
	store *mortal
	r     *rand.Rand
}

// worker returns one that dies at its n-th request, or never if n is negative.
func (f *farm) worker(r *rand.Rand, n int, after bool) *worker {
	s := f.next()
	w := &worker{f, s, &mortal{Store: s.store, left: n, after: after}, rand.New(rand.NewPCG(r.Uint64(), 1))}
	s.store = w.store
	return w
}

// work executes any of the first few messages, and reports whether there was one.
func (w *worker) work() (bool, error) {
	ctx := w.t.Context()
	ms, err := w.jobs.Receive(ctx, 5, 0, visibility)
	if err != nil || len(ms) == 0 {
		return false, err
	}
	i := w.r.IntN(len(ms))
	if err := w.jobs.Release(ctx, 0, slices.Delete(slices.Clone(ms), i, i+1)...); err != nil {
		return true, err
	}
	r, err := w.stage.Work(ctx, []byte(ms[i].Body))
	w.count(r.Job.Kind.String(), string(r.Outcome))
	if err != nil || w.store.isDead() {
		w.count("worker", "died")
		return true, err
	}
	return true, w.jobs.Delete(ctx, ms[i])
}

// work lets a worker do one message.
func (f *farm) work(r *rand.Rand, n int, after bool) bool {
	f.t.Helper()
	did, err := f.worker(r, n, after).work()
	require.NoError(f.t, err)
	return did
}

// drain lets workers do all that is on the queue.
func (f *farm) drain(r *rand.Rand) {
	for f.work(r, -1, false) {
	}
}

// TestFarm lives through two days with two planners whose ticks overlap, workers that die, and a
// queue that loses, doubles and reorders. The answer never changes, and in the end there is one
// block a day.
func TestFarm(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			set := Settings{Policy: plan.Policy{MinPartSegments: 2}, OrphanGrace: 20 * time.Minute}
			if seed == 1 {
				set.MaxJobSamples = 300 // so that there are splits
			}
			f := newFarm(t, set, 2)
			r := rand.New(rand.NewPCG(seed, 1))
			for f.now = day.Add(10 * time.Minute); f.now.Before(day.Add(48 * time.Hour)); f.now = f.now.Add(10 * time.Minute) {
				f.live(r)
				if f.now.Minute() == 30 {
					f.check("t")
				}
			}
			for f.now = day.Add(49 * time.Hour); f.now.Before(day.Add(56 * time.Hour)); f.now = f.now.Add(6 * time.Minute) {
				f.tick()
				f.drain(r)
			}
			f.check("t")
			days := map[string]bool{}
			for _, l := range f.levels("t") {
				days[strings.Join(strings.Fields(l)[:2], " ")] = true
			}
			require.Equal(t, map[string]bool{"24h 20260301T0000Z": true, "24h 20260302T0000Z": true}, days)
			require.Empty(t, f.leftovers("t"))
			require.Empty(t, f.jobs.Messages())
			for _, what := range []string{"merge done", "merge conflict", "merge failed", "worker died"} { // it was worth something
				require.Greater(t, f.counted(what), int64(3), what)
			}
			if set.MaxJobSamples > 0 {
				require.Greater(t, f.counted("slice done"), int64(3))
			}
		})
	}
}

// live is ten minutes of a farm.
func (f *farm) live(r *rand.Rand) {
	switch at := f.now; {
	case r.IntN(40) == 0:
		at = at.Add(-time.Duration(r.IntN(20)) * time.Hour) // late
		fallthrough
	case r.IntN(2) == 0:
		if at.Before(day) {
			at = day
		}
		f.write("t", seriesRows(8, float64(f.now.Unix()%1000), at))
	}
	if r.IntN(100) == 0 {
		f.delete("t", catalog.Matcher{Type: "=", Name: "i", Value: fmt.Sprint(r.IntN(8))}, "0:00", fmt.Sprintf("%d:00", 1+r.IntN(46)))
	}
	switch r.IntN(6) {
	case 0:
		f.script.Add(memqueue.Send, memqueue.Fault{Err: errFault})
	case 1:
		f.script.Add(memqueue.Send, memqueue.Fault{Err: errFault, After: true, Only: 1})
	case 2:
		f.script.Add(memqueue.Send, memqueue.Fault{Twice: true})
	}
	if r.IntN(3) > 0 { // else the schedule is late
		f.tick()
	}
	var all sync.WaitGroup
	for range r.IntN(4) {
		die := -1
		if r.IntN(3) == 0 {
			die = r.IntN(30)
		}
		w := f.worker(r, die, r.IntN(2) == 0)
		all.Go(func() {
			if _, err := w.work(); err != nil {
				f.t.Errorf("work: %v", err)
			}
		})
	}
	all.Wait()
}

// TestWorkersDie at every request that a job makes, before or after its effect.
func TestWorkersDie(t *testing.T) {
	for _, after := range []bool{false, true} {
		deaths := 0
		for n, died := 0, true; died; n++ {
			f := newFarm(t, Settings{OrphanGrace: 20 * time.Minute}, 1)
			r := rand.New(rand.NewPCG(1, 1))
			f.at("0:10").write("t", seriesRows(11, 1, clock("0:05")))
			f.at("0:11").write("t", seriesRows(11, 2, clock("0:06")))
			f.at("2:15")
			require.Equal(t, 1, f.tick())
			require.True(t, f.work(r, n, after))
			f.check("t")
			died = len(f.jobs.Messages()) > 0
			if died {
				deaths++
			}
			for _, at := range []string{"2:16", "2:21", "2:31", "2:40", "3:00", "3:20", "3:40", "4:00", "4:20"} {
				f.at(at)
				f.tick()
				f.drain(r)
				f.check("t")
			}
			require.Equal(t, []string{"2h 20260301T0000Z"}, f.levels("t"))
			require.Empty(t, f.leftovers("t"), "after=%v request=%d", after, n)
			require.Empty(t, f.jobs.Messages())
		}
		require.Greater(t, deaths, 8)
	}
}

// TestCatchUp: after three days without a schedule, two workers bring everything to one block a day
// in a few ticks, the oldest first.
func TestCatchUp(t *testing.T) {
	f := newFarm(t, Settings{}, 1)
	r := rand.New(rand.NewPCG(1, 1))
	f.scrape("t", "0:00", "72:00", 20*time.Minute, 8)
	f.at("72:15")
	reports, ticks := []time.Duration{}, 0
	for ; ticks < 20; ticks++ {
		rep, err := f.ticking[0].Dispatch(t.Context(), f.jobs)
		require.NoError(t, err)
		reports = append(reports, rep.State.Lag)
		if len(rep.Planned) == 0 {
			break
		}
		f.work(r, -1, false)
		f.work(r, -1, false)
		f.check("t")
		f.now = f.now.Add(time.Minute)
	}
	require.Equal(t, []string{"24h 20260301T0000Z", "24h 20260302T0000Z", "24h 20260303T0000Z"}, f.levels("t"))
	require.Less(t, ticks, 10)
	require.Equal(t, 70*time.Hour+5*time.Minute, reports[0], "the first window was due at 2:10")
	require.Zero(t, reports[len(reports)-1])
}

// TestBadObject: a job that fails whenever it is tried keeps no other job of its day from being
// done.
func TestBadObject(t *testing.T) {
	f := newFarm(t, Settings{}, 1)
	f.scrape("t", "0:00", "8:00", 30*time.Minute, 3)
	f.putJunk(catalog.SegmentID{Window: key.WindowOf(clock("2:00").UnixMilli()), ID: idAt(clock("3:00"), 1)}.Key("t").String())
	r := rand.New(rand.NewPCG(1, 1))
	for f.at("8:15"); f.now.Before(clock("9:00")); f.now = f.now.Add(3 * time.Minute) {
		f.tick()
		f.drain(r)
	}
	require.Equal(t, []string{"2h 20260301T0000Z", "2h 20260301T0400Z", "2h 20260301T0600Z"}, f.levels("t"))
	require.Greater(t, f.counted("merge failed"), int64(5), "it is tried again and again")
	require.Empty(t, f.jobs.Messages())
	set, err := f.set.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, 4*time.Hour+50*time.Minute, plan.StateOf(set.Policy, f.now, f.snapshot("t")).Lag, "and somebody is to look at it")
}
