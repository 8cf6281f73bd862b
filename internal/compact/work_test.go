package compact

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

func encoded(t *testing.T, tenant string, j plan.Job) []byte {
	t.Helper()
	body, err := Work{Tenant: tenant, Job: j}.Encode()
	require.NoError(t, err)
	return body
}

// TestStaleCopies: a job that is done already, or was planned too long ago, costs one read of the
// manifest, or nothing.
func TestStaleCopies(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{Policy: plan.Policy{MaxJobSamples: 200, Retention: 100 * time.Hour}}, 2)
	l.scrape("t", "0:00", "24:00", 30*time.Minute, 15)
	l.at("24:15")
	var copies []plan.Job
	do := func(at string) {
		l.at(at)
		for jobs := plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t")); len(jobs) > 0; jobs = plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t")) {
			for _, j := range jobs {
				r, err := s.Work(t.Context(), encoded(t, "t", j))
				require.NoError(t, err)
				require.Equal(t, Done, r.Outcome, "%v", r.Err)
				copies = append(copies, j)
			}
		}
	}
	do("24:15")
	l.delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m1"}, "0:00", "30:00")
	do("24:20")
	kinds := map[plan.Kind]int{}
	for _, at := range []string{"24:21", "24:40", "48:00"} {
		l.at(at)
		for _, j := range copies {
			kinds[j.Kind]++
			asked := l.requests(func() {
				r, err := s.Work(t.Context(), encoded(t, "t", j))
				require.NoError(t, err)
				if j.Kind == plan.Drop && at == "24:21" { // forgetting what is forgotten changes nothing
					require.Equal(t, Done, r.Outcome)
					return
				}
				require.Equal(t, Conflict, r.Outcome, "%s", j)
			})
			require.Equal(t, 1, asked[memstore.Get], "%s at %s", j, at)
			delete(asked, memstore.Get)
			require.LessOrEqual(t, asked[memstore.Now], 1, "%s at %s", j, at)
			delete(asked, memstore.Now)
			require.Empty(t, asked, "%s at %s", j, at)
		}
	}
	require.Greater(t, kinds[plan.Cut], 2)
	require.Positive(t, kinds[plan.Split])
	require.Positive(t, kinds[plan.Drop])

	l.at("200:00")
	jobs := plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t"))
	require.Equal(t, plan.Expire, jobs[0].Kind)
	do("200:00")
	asked := l.requests(func() {
		r, err := s.Work(t.Context(), encoded(t, "t", jobs[0]))
		require.NoError(t, err)
		require.Equal(t, Conflict, r.Outcome)
	})
	require.Equal(t, map[memstore.Op]int{memstore.Get: 1, memstore.Now: 1}, asked)
}

// TestClaimedSources: a merge of what a split has claimed meanwhile ends at the manifest.
func TestClaimedSources(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	l.at("0:30").write("t", seriesRows(3, 1, clock("0:10")))
	merge := plan.Jobs(s.Settings().Policy, l.at("2:15").now, l.snapshot("t"))[0]
	split := merge
	split.Kind, split.Slice = plan.Split, catalog.Slice{Of: 2}
	_, err := s.Work(t.Context(), encoded(t, "t", split))
	require.NoError(t, err)
	asked := l.requests(func() {
		r, err := s.Work(t.Context(), encoded(t, "t", merge))
		require.NoError(t, err)
		require.Equal(t, Conflict, r.Outcome)
		require.ErrorContains(t, r.Err, "claims a source")
	})
	require.Equal(t, map[memstore.Op]int{memstore.Get: 1}, asked)
}

// TestNoJob: only a message without a job is an error, and causes no request to the store.
func TestNoJob(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	asked := l.requests(func() {
		_, err := s.Work(t.Context(), []byte(`{"version":7}`))
		require.ErrorIs(t, err, ErrNoJob)
	})
	require.Empty(t, asked)
}

// TestFailedJob: a failed job is logged and its message is done; a job whose process is ending is
// not.
func TestFailedJob(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	var text bytes.Buffer
	s.log = slog.New(slog.NewJSONHandler(&text, nil))
	l.at("0:30").write("t", seriesRows(3, 1, clock("0:10")))
	l.write("t", seriesRows(3, 2, clock("0:10")))
	body := encoded(t, "t", plan.Jobs(s.Settings().Policy, l.at("2:15").now, l.snapshot("t"))[0])
	fail := func(c memstore.Call) memstore.Fault {
		if strings.Contains(c.Key, "/segments/") {
			return memstore.Fault{Err: errFault}
		}
		return memstore.Fault{}
	}
	l.each = fail
	r, err := s.Work(t.Context(), body)
	require.NoError(t, err)
	require.Equal(t, Failed, r.Outcome)
	require.ErrorIs(t, r.Err, errFault)
	require.Contains(t, text.String(), `"level":"ERROR","msg":"compaction failed","tenant":"t"`)

	ctx, cancel := context.WithCancel(t.Context())
	l.each = func(c memstore.Call) memstore.Fault { cancel(); return fail(c) }
	_, err = s.Work(ctx, body)
	require.Error(t, err)
	l.each = nil
	r, err = s.Work(t.Context(), body)
	require.NoError(t, err)
	require.Equal(t, Done, r.Outcome)
	l.check("t")
}

// TestSlowJob: a job that is out of time is recorded as a split into as many slices as its pace
// asks for, and the slices are done.
func TestSlowJob(t *testing.T) {
	for _, tc := range []struct {
		name     string
		deadline time.Duration // of the invocation; 0 for none
		timeout  time.Duration
		want     string
	}{
		{"job timeout", 0, 10 * time.Minute, "job takes longer than 10m0s"},
		{"the most that a commit may wait", 0, 0, "job takes longer than 14m30s"},
		{"function", 5 * time.Minute, 0, "job takes longer than 4m30s"},
		{"long function", 15 * time.Minute, 0, "job takes longer than 14m30s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLake(t)
				s := l.stage(Settings{JobTimeout: tc.timeout}, 2)
				l.scrape("t", "0:00", "24:00", 30*time.Minute, 15)
				l.at("24:05").untilIdle(l.stage(Settings{}, 3))
				l.check("t")
				l.at("24:15")
				job := plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t"))[0]
				require.Equal(t, key.L24h, job.Level)
				var text bytes.Buffer
				s.log = slog.New(slog.NewJSONHandler(&text, nil))
				ctx, begin := t.Context(), time.Now()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				l.each = func(c memstore.Call) memstore.Fault { // the upload of samples takes for ever
					if c.Op == memstore.Put && strings.Contains(c.Key, "/blocks/24h/") {
						return memstore.Fault{Until: make(chan struct{})}
					}
					return memstore.Fault{}
				}
				r, err := s.Work(ctx, encoded(t, "t", job))
				l.each = nil
				require.NoError(t, err)
				require.Equal(t, Done, r.Outcome, "%v", r.Err)
				require.Equal(t, plan.Split, r.Job.Kind)
				require.Contains(t, text.String(), "a job takes too long and is split")
				if tc.deadline > 0 {
					require.Less(t, time.Since(begin), tc.deadline)
				}
				require.Len(t, l.snapshot("t").Manifest.Splits, 1)
				l.check("t")
				l.untilIdle(s)
				l.check("t")
				require.Greater(t, len(l.levels("t")), 1)
				for _, level := range l.levels("t") {
					require.Contains(t, level, "24h 20260301T0000Z ")
				}
			})
		})
	}
}

// TestSlowPart: a job that cannot be split fails, and its error states why.
func TestSlowPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t)
		s := l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}}, 2)
		l.at("0:10").write("t", seriesRows(5, 1, clock("0:05")))
		l.at("0:11").write("t", seriesRows(5, 2, clock("0:06")))
		job := plan.Jobs(s.Settings().Policy, l.at("0:30").now, l.snapshot("t"))[0]
		require.Equal(t, key.Part, job.Level)
		l.each = func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Put {
				return memstore.Fault{Until: make(chan struct{})}
			}
			return memstore.Fault{}
		}
		r, err := s.Work(t.Context(), encoded(t, "t", job))
		l.each = nil
		require.NoError(t, err)
		require.Equal(t, Failed, r.Outcome)
		require.True(t, errors.Is(r.Err, errSlow))
		require.ErrorContains(t, r.Err, "job takes longer than 14m30s (job timeout, or what is left of the invocation)")
		l.untilIdle(s)
		l.check("t")
	})
}

// TestSlices: how many slices a job out of time is cut into.
func TestSlices(t *testing.T) {
	for _, tc := range []struct{ read, total, want int64 }{
		{0, 1000, 2}, {1000, 1000, 2}, {900, 1000, 4}, {500, 1000, 4}, {400, 1000, 8}, {100, 1000, 32}, {1, 1000, 64}, {1, 0, 2},
	} {
		require.EqualValues(t, tc.want, slicesAt(tc.read, tc.total), tc)
	}
}

// TestSlowSlice: a slice that is out of time makes its split a finer one, until there are too many
// slices; in the end all of them are done.
func TestSlowSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t)
		s := l.stage(Settings{Policy: plan.Policy{MaxJobSamples: 400}}, 2)
		l.scrape("t", "0:00", "24:00", 30*time.Minute, 15)
		l.at("24:05").untilIdle(l.stage(Settings{}, 3))
		l.at("24:15")
		next := func() plan.Job { return plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t"))[0] }
		r, err := s.Work(t.Context(), encoded(t, "t", next()))
		require.NoError(t, err)
		require.Equal(t, plan.Split, r.Job.Kind)
		r, err = s.Work(t.Context(), encoded(t, "t", next())) // the first slice is done, and will be again
		require.NoError(t, err)
		require.Equal(t, Done, r.Outcome)
		of := []int{r.Job.Slice.Of}
		for {
			l.each = func(c memstore.Call) memstore.Fault {
				if c.Op == memstore.Put && strings.Contains(c.Key, "/blocks/24h/") {
					return memstore.Fault{Until: make(chan struct{})}
				}
				return memstore.Fault{}
			}
			r, err = s.Work(t.Context(), encoded(t, "t", next()))
			l.each = nil
			require.NoError(t, err)
			l.check("t")
			if r.Outcome != Done {
				break
			}
			require.Equal(t, plan.Split, r.Job.Kind)
			of = append(of, r.Job.Slice.Of)
		}
		require.Equal(t, []int{2, 4, 8, 16, 32, 64}, of)
		require.ErrorIs(t, r.Err, errSlow)
		l.untilIdle(s)
		l.check("t")
		for _, at := range []string{"25:00", "25:30", "26:00", "26:30"} {
			l.at(at).untilIdle(s)
		}
		require.Empty(t, l.leftovers("t"))
	})
}
