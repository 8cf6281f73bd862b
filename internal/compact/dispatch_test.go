package compact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
)

// requests counts what f asks of the store, by operation.
func (l *lake) requests(f func()) map[memstore.Op]int {
	out := map[memstore.Op]int{}
	l.each = func(c memstore.Call) memstore.Fault { out[c.Op]++; return memstore.Fault{} }
	f()
	l.each = nil
	return out
}

// TestIdleTicks: the requests of a tick for each tenant that has no work.
func TestIdleTicks(t *testing.T) {
	for _, tenants := range []int{1, 100} {
		t.Run(fmt.Sprintf("tenants=%d", tenants), func(t *testing.T) {
			f := newFarm(t, Settings{}, 1)
			r := rand.New(rand.NewPCG(1, 1))
			f.at("0:30")
			for i := range tenants {
				f.write(fmt.Sprintf("t%d", i), seriesRows(1, 1, clock("0:10")))
			}
			for _, at := range []string{"2:15", "24:15", "25:00", "25:30", "26:00", "26:30"} {
				f.at(at)
				f.tick()
				f.drain(r)
			}
			f.at("28:00")
			cold := f.requests(func() { require.Zero(t, f.tick()) })
			hour := f.requests(func() {
				for range 60 {
					f.now = f.now.Add(time.Minute)
					require.Zero(t, f.tick())
				}
			})
			t.Logf("first tick: %v; an hour of ticks: %v", cold, hour)
			require.LessOrEqual(t, cold[memstore.List], 1+4*tenants, "tenants at once; segments, manifests, blocks, answers of each")
			require.LessOrEqual(t, hour[memstore.List], 60*tenants, "a listing per tick and tenant")
			require.LessOrEqual(t, hour[memstore.Get], 60*tenants/2)
			require.Zero(t, hour[memstore.Put])
			require.Zero(t, hour[memstore.Delete])
		})
	}
}

// TestTicksNotice: new objects of an idle tenant, or of an unknown one, are noticed within minutes.
func TestTicksNotice(t *testing.T) {
	f := newFarm(t, Settings{Policy: plan.Policy{MinPartSegments: 2}}, 1)
	f.at("0:30").write("old", seriesRows(1, 1, clock("0:10")))
	f.at("2:15")
	require.Equal(t, 1, f.tick())
	f.drain(rand.New(rand.NewPCG(1, 1)))
	f.at("4:00")
	require.Zero(t, f.tick())
	for _, tenant := range []string{"new", "old"} {
		f.write(tenant, seriesRows(1, 1, clock("3:50")))
		f.write(tenant, seriesRows(1, 2, clock("3:50")))
	}
	found := map[string]time.Time{}
	for f.now.Before(clock("4:20")) {
		f.now = f.now.Add(time.Minute)
		r, err := f.ticking[0].Dispatch(t.Context(), f.jobs)
		require.NoError(t, err)
		for _, w := range r.Planned {
			if found[w.Tenant].IsZero() {
				found[w.Tenant] = f.now
			}
		}
	}
	require.Equal(t, map[string]time.Time{"old": clock("4:03"), "new": clock("4:04")}, found)
}

// TestOverlappingTicks: the second of two plans adds nothing to the queue, and neither does a
// repetition within its memory.
func TestOverlappingTicks(t *testing.T) {
	f := newFarm(t, Settings{Policy: plan.Policy{MinPartSegments: 2}}, 3)
	for _, tenant := range []string{"a", "b"} {
		f.scrape(tenant, "0:00", "4:00", 30*time.Minute, 3)
	}
	f.at("4:15")
	require.Equal(t, 12, f.tick(), "each of three planners sends two windows of two tenants")
	require.Len(t, f.jobs.Messages(), 4)
	f.at("4:19")
	f.tick()
	require.Len(t, f.jobs.Messages(), 4)
	f.at("4:21")
	f.tick()
	require.Len(t, f.jobs.Messages(), 8, "after five minutes the queue takes a copy")
	f.drain(rand.New(rand.NewPCG(1, 1)))
	require.Equal(t, int64(4), f.counted("merge done"))
	require.Equal(t, int64(4), f.counted("merge conflict"))
}

func TestChoose(t *testing.T) {
	job := func(tenant string, l key.Level, at string) Work {
		return Work{Tenant: tenant, Job: plan.Job{Kind: plan.Merge, Level: l, Window: l.WindowOf(clock(at).UnixMilli())}}
	}
	var work []Work
	for h := range 60 { // five days of a large tenant
		work = append(work, job("large", key.L2h, fmt.Sprintf("%d:00", 2*h)))
	}
	work = append(work, job("small", key.L2h, "118:00"), job("tiny", key.L24h, "0:00"))
	r := rand.New(rand.NewPCG(1, 1))
	got := choose(work, 5, r)
	require.Equal(t, []string{"large", "tiny", "small", "large", "large"}, tenantsOf(got), "each tenant first, by the age of its day")
	require.Len(t, choose(work, 1000, r), len(work))
	require.Empty(t, choose(nil, 5, r))
	first := map[key.Window]bool{}
	for range 200 {
		got := choose(work, 100, r)
		first[got[0].Job.Window] = true
		var days []key.Window
		for _, w := range got {
			if w.Tenant == "large" {
				days = append(days, key.L24h.WindowOf(int64(w.Job.Window)))
			}
		}
		require.True(t, slices.IsSorted(days), "the oldest days first")
	}
	require.Len(t, first, 12, "any job of the oldest day comes first some time")
}

func tenantsOf(work []Work) (out []string) {
	for _, w := range work {
		out = append(out, w.Tenant)
	}
	return out
}

// TestTickLimit: a tick hands out no more than it may, and the next ones go on.
func TestTickLimit(t *testing.T) {
	f := newFarm(t, Settings{MaxJobsPerTick: 3}, 1)
	f.scrape("t", "0:00", "12:00", 30*time.Minute, 2)
	f.at("12:05")
	for n := range 5 {
		r, err := f.ticking[0].Dispatch(t.Context(), f.jobs)
		require.NoError(t, err)
		require.Equal(t, min(3, len(r.Planned)), r.Sent)
		require.LessOrEqual(t, len(f.jobs.Messages()), 3)
		f.drain(rand.New(rand.NewPCG(uint64(n), 1)))
	}
	require.Len(t, f.levels("t"), 5, "all windows that are closed")
	f.check("t")
}

// TestPlannedLine: alarms read this line.
func TestPlannedLine(t *testing.T) {
	l := newLake(t)
	var text bytes.Buffer
	s := l.stage(Settings{OwnTenant: "metrics"}, 2)
	s.log = slog.New(slog.NewJSONHandler(&text, nil))
	line := func() (out map[string]any) {
		t.Helper()
		require.Equal(t, 1, bytes.Count(text.Bytes(), []byte(`"msg":"planned"`)))
		require.NoError(t, json.Unmarshal(text.Bytes(), &out))
		text.Reset()
		delete(out, "time")
		return out
	}
	l.at("0:30").write("a", seriesRows(10, 1, clock("0:10")))
	l.at("0:30").write("b", seriesRows(10, 1, clock("0:10")))
	l.at("3:10")
	jobs := memqueue.New(memqueue.Settings{Now: l.clock})
	_, err := s.Dispatch(t.Context(), jobs)
	require.NoError(t, err)
	want := line()
	require.Greater(t, want["segment_bytes"], 100.0)
	delete(want, "segment_bytes")
	require.Equal(t, map[string]any{
		"level": "INFO", "msg": "planned", "lag_seconds": 3600.0, "silent_seconds": 9600.0, "tenants": 2.0, "looked": 2.0, "jobs": 2.0, "sent": 2.0, "done": 0.0, "failed": 0.0,
		"segments": 2.0, "blocks": 0.0, "tombstones": 0.0, "garbage_objects": 0.0, "deleted_objects": 0.0, "took_seconds": 0.0,
	}, want)
	for _, m := range jobs.Messages() {
		_, err := l.stage(Settings{}, 3).Work(t.Context(), []byte(m.Body))
		require.NoError(t, err)
	}
	l.at("3:11")
	_, err = s.Dispatch(t.Context(), jobs)
	require.NoError(t, err)
	later := line()
	require.Zero(t, later["lag_seconds"])
	require.InDelta(t, 9660, later["silent_seconds"], 0, "compaction writes nothing new")
	l.at("3:12").write("metrics", seriesRows(10, 1, clock("0:10")))
	l.at("3:15")
	_, err = s.Dispatch(t.Context(), jobs)
	require.NoError(t, err)
	require.InDelta(t, 9900, line()["silent_seconds"], 0, "the functions' own metrics do not count")
	l.at("24:31")
	_, err = s.Dispatch(t.Context(), jobs)
	require.NoError(t, err)
	require.Zero(t, line()["silent_seconds"], "unused for a day")
}

// TestTicksGoOn: what fails for one tenant, or at the queue, is reported, and does not keep the
// others from being planned.
func TestTicksGoOn(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	for _, tenant := range []string{"a", "b"} {
		l.at("0:30").write(tenant, seriesRows(10, 1, clock("0:10")))
	}
	l.at("3:10")
	script := memqueue.Script{}
	jobs := memqueue.New(memqueue.Settings{Now: l.clock, Faults: script.Next})
	script.Add(memqueue.Send, memqueue.Fault{Err: errFault})
	l.each = func(c memstore.Call) memstore.Fault {
		if c.Key == key.SegmentsPrefix("a") {
			return memstore.Fault{Err: errFault}
		}
		return memstore.Fault{}
	}
	r, err := s.Dispatch(t.Context(), jobs)
	require.ErrorIs(t, err, errFault)
	require.ErrorContains(t, err, "compact tenant a: ")
	require.ErrorContains(t, err, "compact: send 1 job: ")
	require.Zero(t, r.Sent)
	require.Equal(t, 1, r.Checked)
	l.each = nil
	r, err = s.Dispatch(t.Context(), jobs)
	require.NoError(t, err)
	require.Equal(t, 2, r.Sent)

	l.each = func(c memstore.Call) memstore.Fault { return memstore.Fault{Err: errFault} }
	_, err = l.stage(Settings{}, 3).Dispatch(t.Context(), jobs)
	require.ErrorContains(t, err, "list tenants: ")
	require.True(t, errors.Is(err, errFault))
}

// TestTickAlone: without workers a tick does the jobs itself.
func TestTickAlone(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	l.scrape("t", "0:00", "24:00", 30*time.Minute, 10)
	for _, at := range []string{"24:15", "24:16", "24:40", "24:50", "25:00", "25:10", "25:20", "25:30"} {
		l.at(at)
		_, err := s.Tick(t.Context())
		require.NoError(t, err)
		l.check("t")
	}
	require.Equal(t, []string{"24h 20260301T0000Z"}, l.levels("t"))
	require.Empty(t, l.leftovers("t"))
	l.at("25:31")
	l.delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m1"}, "0:00", "1:00")
	l.at("25:37")
	_, err := s.Tick(t.Context())
	require.NoError(t, err)
	l.check("t")
}

// BenchmarkIdleTick is a tick over tenants that have nothing to do, at its most expensive: the
// planner remembers nothing.
func BenchmarkIdleTick(b *testing.B) {
	for _, tenants := range []int{1, 100} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			mem := memstore.New(memstore.Settings{})
			for i := range tenants {
				_, err := catalog.Commit(b.Context(), mem, fmt.Sprintf("t%d", i), func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
					next, _, err := m.Delete(time.Now(), catalog.Tombstone{Matchers: []catalog.Matcher{{Type: "=", Name: "a", Value: "b"}}, MinT: 0, MaxT: 1}, nil)
					return next, err
				})
				require.NoError(b, err)
			}
			for b.Loop() {
				s, err := New(Settings{}, mem, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
				require.NoError(b, err)
				_, err = s.Dispatch(b.Context(), memqueue.New(memqueue.Settings{}))
				require.NoError(b, err)
			}
		})
	}
}
