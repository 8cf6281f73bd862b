package compact

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
)

// TestDay writes for a day and compacts meanwhile; the answer never changes, and in the end there
// is one block.
func TestDay(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	for h := range 24 {
		l.scrape("t", fmt.Sprintf("%d:00", h), fmt.Sprintf("%d:00", h+1), 5*time.Minute, 20)
		l.at(fmt.Sprintf("%d:15", h+1))
		l.untilIdle(s)
		l.check("t")
	}
	require.Equal(t, []string{"24h 20260301T0000Z"}, l.levels("t"))
	require.Empty(t, l.snapshot("t").Segments)
	require.Empty(t, plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t")))
	// Garbage goes once its time has come, and history with it.
	l.at("25:00").untilIdle(s)
	l.at("26:00").untilIdle(s)
	l.at("27:00").untilIdle(s)
	l.check("t")
	for _, k := range l.mem.Keys() {
		require.False(t, strings.Contains(k, "/segments/") || strings.Contains(k, "/blocks/part/") || strings.Contains(k, "/blocks/2h/"), k)
	}
}

func TestRollups(t *testing.T) {
	for _, without := range []bool{false, true} {
		l := newLake(t)
		l.scrape("t", "0:00", "24:00", 30*time.Minute, 15)
		l.write("t", []segment.Row{burst(clock("3:00"))})
		l.at("24:15").untilIdle(l.stage(Settings{WithoutRollups: without}, 2))
		require.Equal(t, []string{"24h 20260301T0000Z"}, l.levels("t"))
		var rollups int
		for _, k := range l.mem.Keys() {
			if strings.Contains(k, "/rollup-") {
				require.Contains(t, k, "/blocks/24h/")
				rollups++
			}
		}
		require.Equal(t, without, rollups == 0, rollups)
		l.check("t")
	}
}

func TestLateData(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	l.scrape("t", "0:00", "24:00", 30*time.Minute, 15)
	l.at("24:15").untilIdle(s)
	require.Equal(t, []string{"24h 20260301T0000Z"}, l.levels("t"))
	l.at("30:00").write("t", seriesRows(30, 7, clock("3:00"), clock("3:01"), clock("17:30")))
	l.check("t")
	l.at("30:05").untilIdle(s)
	l.check("t")
	require.Len(t, l.snapshot("t").Segments, 2, "late data waits for more")
	l.at("30:11").untilIdle(s)
	l.check("t")
	require.Equal(t, []string{"24h 20260301T0000Z"}, l.levels("t"))
	require.Empty(t, l.snapshot("t").Segments)
}

func TestDelete(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	l.scrape("t", "0:00", "24:00", 30*time.Minute, 15)
	l.at("24:15").untilIdle(s)
	l.delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m1"}, "3:00", "20:00")
	l.check("t")
	l.at("24:16").write("t", seriesRows(15, 3, clock("4:00"))) // what is written later stays
	l.check("t")
	l.at("24:20").untilIdle(s)
	l.check("t")
	require.Empty(t, l.snapshot("t").Manifest.Tombstones, "applied and forgotten")
	l.at("24:21").delete("t", catalog.Matcher{Type: "=~", Name: "__name__", Value: ".+"}, "0:00", "30:00")
	l.check("t")
	l.at("24:25").untilIdle(s)
	l.check("t")
	require.Zero(t, l.want.Count())
	require.Zero(t, l.snapshot("t").Blocks[0].Samples, "metadata is left")
}

func TestRetention(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{Policy: plan.Policy{Retention: 48 * time.Hour, TenantRetention: map[string]time.Duration{"u": 0}}}, 2)
	l.at("0:30").write("t", seriesRows(3, 1, clock("0:10")))
	require.NoError(t, s.UntilIdle(t.Context(), nil, nil))
	l.at("72:00")
	r, err := s.Cycle(t.Context())
	require.NoError(t, err)
	require.Len(t, r.Planned, 1)
	require.Equal(t, plan.Expire, r.Planned[0].Job.Kind)
	require.Empty(t, l.levels("t"))
	require.Empty(t, l.snapshot("t").Segments)
	for range 3 {
		l.now = l.now.Add(time.Hour)
		l.untilIdle(s)
	}
	for _, k := range l.mem.Keys() {
		require.True(t, strings.HasPrefix(k, "v1/t/manifest"), k)
	}
}

// TestSplit cuts a day into slices, and later data is merged into it slice by slice.
func TestSplit(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{Policy: plan.Policy{MaxJobSamples: 400}}, 2)
	l.scrape("t", "0:00", "24:00", 30*time.Minute, 25)
	l.at("12:15").untilIdle(l.stage(Settings{}, 3))
	l.at("24:05").untilIdle(l.stage(Settings{}, 4))
	l.at("24:15")
	r, err := s.Cycle(t.Context())
	require.NoError(t, err)
	require.Zero(t, r.Of(Failed))
	l.check("t")
	l.untilIdle(s)
	l.check("t")
	require.Equal(t, []string{"24h 20260301T0000Z 0/4", "24h 20260301T0000Z 1/4", "24h 20260301T0000Z 2/4", "24h 20260301T0000Z 3/4"}, l.levels("t"))
	l.at("30:00").write("t", seriesRows(30, 7, clock("3:00")))
	l.at("30:30").untilIdle(s)
	l.check("t")
	require.Len(t, l.levels("t"), 4)
	require.Empty(t, l.snapshot("t").Segments)
	require.Empty(t, l.snapshot("t").Manifest.Splits)
}

// TestSplitIsAtomic: the sources count until the last slice is done.
func TestSplitIsAtomic(t *testing.T) {
	l := newLake(t)
	l.splitDay(func() { l.check("t") })
}

// splitDay stores a day that no job may merge as a whole, and runs job by job until all of its
// slices are live. It calls after after each job.
func (l *lake) splitDay(after func()) {
	l.t.Helper()
	s := l.stage(Settings{Policy: plan.Policy{MaxJobSamples: 400}}, 2)
	l.scrape("t", "0:00", "2:00", 5*time.Minute, 30)
	l.at("2:15").untilIdle(l.stage(Settings{}, 3))
	l.at("24:15")
	for n := 0; ; n++ {
		jobs := plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t"))
		if len(jobs) == 0 {
			require.Greater(l.t, n, 2)
			return
		}
		r, err := s.Run(l.t.Context(), "t", jobs[0])
		require.NoError(l.t, err)
		require.Equal(l.t, Done, r.Outcome)
		after()
	}
}

// TestSplitOfOtherRank: the slices of a split that another version began have the rank that it
// recorded.
func TestSplitOfOtherRank(t *testing.T) {
	l := newLake(t)
	l.splitDay(func() {
		_, err := catalog.Commit(t.Context(), l.mem, "t", func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			if len(m.Splits) == 1 && len(m.Splits[0].Done) == 1 {
				m.Splits[0].Done = slices.Clone(m.Splits[0].Done)
				m.Splits[0].Done[0].Rank[15]++
			}
			return m, nil
		})
		require.NoError(t, err)
	})
	blocks := l.snapshot("t").Blocks
	require.Greater(t, len(blocks), 1)
	for _, b := range blocks {
		require.Equal(t, blocks[0].Rank, b.Rank)
	}
	l.check("t")
}

// TestBudget: a job takes the oldest sources that fit its memory, and the next ones take the rest.
func TestBudget(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{Policy: plan.Policy{MemoryBytes: 300_000}}, 2)
	l.scrape("t", "0:00", "2:00", 5*time.Minute, 100)
	l.at("2:15")
	jobs := plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t"))
	require.Len(t, jobs, 1)
	r, err := s.Run(t.Context(), "t", jobs[0])
	require.NoError(t, err)
	require.Equal(t, Done, r.Outcome)
	require.Equal(t, plan.Merge, r.Job.Kind)
	require.Less(t, len(r.Job.Sources.Segments), 24)
	require.Equal(t, jobs[0].Sources.Segments[:len(r.Job.Sources.Segments)], r.Job.Sources.Segments, "the oldest first")
	l.check("t")
	l.at("2:30").untilIdle(s)
	l.check("t")
	require.Equal(t, []string{"2h 20260301T0000Z"}, l.levels("t"))
}

// TestSeriesBudget: a job whose series tables do not fit becomes a split.
func TestSeriesBudget(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{Policy: plan.Policy{MemoryBytes: 60_000}}, 2)
	l.at("0:30").write("t", seriesRows(500, 1, clock("0:10")))
	l.at("0:31").write("t", seriesRows(500, 2, clock("0:20")))
	l.at("2:15")
	usual, err := Settings{}.WithDefaults()
	require.NoError(t, err)
	jobs := plan.Jobs(usual.Policy, l.now, l.snapshot("t"))
	require.Len(t, jobs, 1)
	r, err := s.Run(t.Context(), "t", jobs[0])
	require.NoError(t, err)
	require.Equal(t, plan.Split, r.Job.Kind)
	require.Len(t, l.snapshot("t").Manifest.Splits, 1)
	l.untilIdle(s)
	l.check("t")
	require.Greater(t, len(l.levels("t")), 1)
}

// TestTwoStages: of two jobs over the same sources one wins, and the other leaves nothing behind.
func TestTwoStages(t *testing.T) {
	l := newLake(t)
	a, b := l.stage(Settings{}, 2), l.stage(Settings{}, 3)
	l.scrape("t", "0:00", "2:00", 10*time.Minute, 10)
	l.at("2:15")
	job := plan.Jobs(a.Settings().Policy, l.now, l.snapshot("t"))[0]
	results := make(chan Result, 2)
	for _, s := range []*Stage{a, b} {
		go func() {
			r, _ := s.Run(t.Context(), "t", job)
			results <- r
		}()
	}
	outcomes := map[Outcome]int{}
	for range 2 {
		outcomes[(<-results).Outcome]++
	}
	require.Equal(t, map[Outcome]int{Done: 1, Conflict: 1}, outcomes)
	l.check("t")
	require.Equal(t, []string{"2h 20260301T0000Z"}, l.levels("t"))
}

func TestTenantsAndReport(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{Concurrency: 4}, 2)
	for _, tenant := range []string{"a", "b", "c"} {
		l.at("0:30").write(tenant, seriesRows(10, 1, clock("0:10")))
	}
	l.at("3:10")
	r, err := s.Cycle(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, r.Of(Done))
	require.Equal(t, 3, r.State.Tenants)
	require.Equal(t, time.Hour, r.State.Lag)
	for _, x := range r.Jobs {
		require.Equal(t, [2]int64{10, 10}, [2]int64{x.Read, x.Written})
		require.Equal(t, key.L2h, x.Job.Level)
	}
	for _, tenant := range []string{"a", "b", "c"} {
		l.check(tenant)
	}
}

// TestMetricsAndProgress: what an operator sees before, while and after a window is compacted.
func TestMetricsAndProgress(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	l.at("0:30").write("t", seriesRows(10, 1, clock("0:10")))
	l.at("0:31").write("t", seriesRows(10, 2, clock("0:11")))
	l.at("3:10")
	var last [2]int64
	require.NoError(t, s.UntilIdle(t.Context(), func(tenant string, job plan.Job, done, total int64) {
		require.Equal(t, "t", tenant)
		require.Equal(t, key.L2h, job.Level)
		last = [2]int64{done, total}
	}, nil))
	require.Equal(t, [2]int64{20, 20}, last)
	require.NoError(t, testutil.GatherAndCompare(l.reg, strings.NewReader(`
# HELP promlake_compact_jobs_total Jobs by kind, level and outcome (done, conflict, failed).
# TYPE promlake_compact_jobs_total counter
promlake_compact_jobs_total{kind="merge",level="2h",outcome="done"} 1
# HELP promlake_compact_samples_written_total Samples written to blocks that were committed.
# TYPE promlake_compact_samples_written_total counter
promlake_compact_samples_written_total 20
# HELP promlake_compact_lag_seconds How long ago the oldest window was due that is not yet a block.
# TYPE promlake_compact_lag_seconds gauge
promlake_compact_lag_seconds 0
# HELP promlake_compact_live_segments Segments that no block stands for yet.
# TYPE promlake_compact_live_segments gauge
promlake_compact_live_segments 0
# HELP promlake_compact_garbage_objects Superseded segments and blocks that are not yet deleted.
# TYPE promlake_compact_garbage_objects gauge
promlake_compact_garbage_objects{kind="block"} 0
promlake_compact_garbage_objects{kind="segment"} 2
# HELP promlake_compact_queue_jobs Jobs that the last plans had and that are not done.
# TYPE promlake_compact_queue_jobs gauge
promlake_compact_queue_jobs 0
`), "promlake_compact_jobs_total", "promlake_compact_samples_written_total", "promlake_compact_lag_seconds", "promlake_compact_live_segments",
		"promlake_compact_garbage_objects", "promlake_compact_queue_jobs"))
}

func TestSettings(t *testing.T) {
	for _, tc := range []struct {
		set  Settings
		want string
	}{
		{Settings{}, ""},
		{Settings{Policy: plan.Policy{MaxSources: 1}}, "compactor.max-sources: want at least 2, got 1"},
		{Settings{Policy: plan.Policy{SettleDelay: -1}}, "compactor.settle-delay: want more than 0, got -1ns"},
		{Settings{OrphanGrace: time.Minute}, "compactor.partial-block-deletion-delay: want more than 15m0s, for the block of a job under way is no orphan, got 1m0s"},
		{Settings{JobTimeout: catalog.MaxJobAge}, ""},
		{Settings{JobTimeout: catalog.MaxJobAge + 1, OrphanGrace: 2 * time.Hour}, "compactor.job-timeout: want at most 15m, got 15m0.000000001s"},
		{Settings{Policy: plan.Policy{Retention: -1}}, "compactor.blocks-retention-period: want at least 0, got -1ns"},
		{Settings{Policy: plan.Policy{TenantRetention: map[string]time.Duration{"x": -1}}}, "compactor.tenant-retention: want 0 or more, got x=-1ns"},
	} {
		_, err := tc.set.WithDefaults()
		if tc.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tc.want)
	}
}

// TestOldPlan: a job that waited too long is not run, for its sources may be gone without a trace.
func TestOldPlan(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	l.at("0:30").write("t", seriesRows(3, 1, clock("0:10")))
	job := plan.Jobs(s.Settings().Policy, l.at("2:15").now, l.snapshot("t"))[0]
	split := job
	split.Kind, split.Slice = plan.Split, catalog.Slice{Of: 2}
	l.at("2:31")
	for _, j := range []plan.Job{job, split} {
		r, err := s.Run(t.Context(), "t", j)
		require.NoError(t, err)
		require.Equal(t, Conflict, r.Outcome, j)
	}
}

// TestMachineClock: the clock of the machine decides nothing, however wrong it is. Neither does a
// step of it in the middle of a job.
func TestMachineClock(t *testing.T) {
	for _, step := range []time.Duration{-28 * time.Hour, -65 * time.Minute, 65 * time.Minute, 500 * time.Hour} {
		l := newLake(t)
		l.scrape("t", "0:00", "2:00", 30*time.Minute, 5)
		l.at("30:00").delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m1"}, "0:00", "1:00")
		n := 0
		wrong := func() time.Time {
			n++
			return l.now.Add(time.Duration(n%3-1) * step)
		}
		set := Settings{Policy: plan.Policy{Retention: 62 * time.Hour}, Entropy: rand.NewChaCha8([32]byte{2}), TempDir: t.TempDir(), Concurrency: 1}
		s, err := New(set, l.store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), wrong)
		require.NoError(t, err)
		l.at("30:00").untilIdle(s)
		require.Equal(t, []string{"24h 20260301T0000Z"}, l.levels("t"))
		l.check("t")
		// A compactor that is ahead makes nothing that is written later older than a deletion.
		l.delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m1"}, "0:00", "40:00")
		l.at("30:01").write("t", seriesRows(3, 7, clock("0:10"), clock("30:00")))
		l.check("t")
		l.at("60:00").untilIdle(s)
		l.check("t")
	}
}
