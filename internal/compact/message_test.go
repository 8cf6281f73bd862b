package compact

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/schematest"
)

func randomID(r *rand.Rand) (id ulid.ULID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

// randomWork is any job that a plan may have.
func randomWork(r *rand.Rand) Work {
	names := []string{"anonymous", "team-a", "!-_.*'()", strings.Repeat("x", 150), strings.Repeat("y", 113)}
	w := Work{Tenant: names[r.IntN(len(names))]}
	j := &w.Job
	j.Kind = plan.Kind(r.IntN(int(plan.Drop) + 1))
	j.Planned, j.Why = day.Add(time.Duration(r.Int64N(int64(time.Hour)))), "because \"of\" <it>"
	if j.Kind == plan.Drop {
		for range 1 + r.IntN(5) {
			j.Drop = append(j.Drop, randomID(r))
		}
		return w
	}
	for range r.IntN(20) {
		at := r.Int64N(key.MaxTime)
		j.Sources.Segments = append(j.Sources.Segments, catalog.SegmentID{Window: key.WindowOf(at), ID: randomID(r)})
	}
	for range 1 + r.IntN(20) {
		l := key.Levels[r.IntN(len(key.Levels))]
		j.Sources.Blocks = append(j.Sources.Blocks, catalog.BlockID{Level: l, Window: l.WindowOf(r.Int64N(key.MaxTime)), ID: randomID(r)})
	}
	j.Samples, j.Bytes = r.Int64N(1e12), r.Int64N(1e12)
	if !j.Windowed() {
		return w
	}
	j.Level = key.Levels[r.IntN(len(key.Levels))]
	j.Window = j.Level.WindowOf(r.Int64N(key.MaxTime))
	switch j.Kind {
	case plan.Split:
		j.Slice.Of = 2 << r.IntN(6)
	case plan.Cut:
		j.Slice.Of = 2 << r.IntN(6)
		j.Slice.Index, j.Split = r.IntN(j.Slice.Of), randomID(r)
	}
	return w
}

func TestMessageRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		w := randomWork(r)
		body, err := w.Encode()
		require.NoError(t, err)
		back, err := Decode(body)
		require.NoError(t, err, string(body))
		require.Equal(t, w, back)
	}
}

// goldenWork has every field that a message may have.
func goldenWork() Work {
	return Work{Tenant: "team-a", Job: plan.Job{
		Kind: plan.Cut, Level: key.L24h, Window: key.L24h.WindowOf(day.UnixMilli()), Slice: catalog.Slice{Index: 1, Of: 4}, Split: idAt(day, 9),
		Sources: catalog.Sources{
			Segments: []catalog.SegmentID{{Window: key.WindowOf(day.UnixMilli()), ID: idAt(day, 1)}},
			Blocks:   []catalog.BlockID{{Level: key.L12h, Window: key.L12h.WindowOf(day.UnixMilli()), ID: idAt(day, 2)}},
		},
		Planned: day.Add(24*time.Hour + 600*time.Second + time.Nanosecond), Why: "the whole is too large for one job", Samples: 5, Bytes: 6,
	}}
}

const goldenMessage = "testdata/job-v1.json"

func TestGoldenMessage(t *testing.T) {
	body, err := goldenWork().Encode()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(goldenMessage, append(body, '\n'), 0o644))
	}
	want, err := os.ReadFile(goldenMessage)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(want)), string(body), "run with -update if this is meant")
	back, err := Decode(want)
	require.NoError(t, err)
	require.Equal(t, goldenWork(), back)
}

func TestMessageRefuses(t *testing.T) {
	good, err := goldenWork().Encode()
	require.NoError(t, err)
	change := func(from, to string) string {
		require.Contains(t, string(good), from)
		return strings.Replace(string(good), from, to, 1)
	}
	for name, tc := range map[string]struct{ body, want string }{
		"nothing":          {"", "unexpected end"},
		"another version":  {change(`"version":1`, `"version":2,"new":true`), "its version is 2, this program knows 1"},
		"no version":       {change(`"version":1,`, ``), "its version is 0, this program knows 1"},
		"unknown field":    {change(`"kind"`, `"later":true,"kind"`), `unknown field "later"`},
		"two":              {string(good) + string(good), "invalid character"},
		"unknown kind":     {change(`"slice","level"`, `"melt","level"`), `kind "melt" is not known`},
		"unknown level":    {change(`"level":"24h"`, `"level":"7d"`), `level "7d"`},
		"window":           {change(`"window":"20260301T0000Z"`, `"window":"20260301T0200Z"`), "no window of level 24h"},
		"no tenant":        {change(`"team-a"`, `""`), `"" is no tenant`},
		"tenant":           {change(`"team-a"`, `"team/a"`), `"team/a" is no tenant`},
		"segment":          {change(`"20260301T0000Z/`, `"../20260301T0000Z/`), "segment key"},
		"block":            {change(`"12h/`, `"x/12h/`), "names no block"},
		"slice":            {change(`"index":1`, `"index":4`), "slice 4 of 4"},
		"no split":         {change(`"split":"`+idAt(day, 9).String()+`",`, ``), "slice 1 of 4 of split 0000"},
		"never planned":    {change(`"2026-03-02T00:10:00.000000001Z"`, `"0001-01-01T00:00:00Z"`), "when it was planned"},
		"merge of nothing": {`{"version":1,"tenant":"a","kind":"merge","level":"2h","window":"20260301T0000Z","planned":"2026-03-02T00:10:00Z","why":""}`, "merge of nothing"},
		"drop of nothing":  {`{"version":1,"tenant":"a","kind":"drop","level":"part","planned":"2026-03-02T00:10:00Z","why":""}`, "drop of nothing"},
		"too long":         {`{"version":1,"why":"` + strings.Repeat("x", MaxBytes) + `"}`, "bytes, the limit is 262144"},
	} {
		_, err := Decode([]byte(tc.body))
		require.ErrorIs(t, err, ErrNoJob, name)
		require.ErrorContains(t, err, tc.want, name)
	}
}

// TestMessageSize: what a plan with the default settings can ask for fits, and is charged as a
// single chunk unless a split is merged anew.
func TestMessageSize(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	work := func(segments, blocks int) Work {
		w := Work{Tenant: strings.Repeat("x", 150), Job: plan.Job{Kind: plan.Merge, Level: key.L24h, Window: key.L24h.WindowOf(day.UnixMilli()), Planned: day, Why: "late data"}}
		for range segments {
			w.Job.Sources.Segments = append(w.Job.Sources.Segments, catalog.SegmentID{Window: key.WindowOf(day.UnixMilli()), ID: randomID(r)})
		}
		for range blocks {
			w.Job.Sources.Blocks = append(w.Job.Sources.Blocks, catalog.BlockID{Level: key.L12h, Window: key.L12h.WindowOf(day.UnixMilli()), ID: randomID(r)})
		}
		return w
	}
	set := settings.Default[plan.Policy]()
	for _, tc := range []struct {
		name  string
		w     Work
		most  int
		chunk int
	}{
		{"a merge of many segments", work(set.MaxSources, 0), 4 << 10, 1},
		{"a merge of the most segments of a function", work(1024, 0), 48 << 10, 1},
		{"a merge of the most blocks, all of the most slices", work(0, set.MaxSources*plan.MaxSlices), 208 << 10, 4},
		{"an expiry", work(0, plan.MaxExpire), 52 << 10, 1},
	} {
		body, err := tc.w.Encode()
		require.NoError(t, err, tc.name)
		require.Less(t, len(body), tc.most, tc.name)
		require.Equal(t, tc.chunk, queue.Chunks(len(body)), tc.name)
		t.Logf("%s: %d bytes", tc.name, len(body))
	}
	tombstones := work(0, 0)
	tombstones.Job.Kind = plan.Drop
	for range catalog.MaxTombstones {
		tombstones.Job.Drop = append(tombstones.Job.Drop, randomID(r))
	}
	_, err := tombstones.Encode()
	require.NoError(t, err)
	_, err = work(7000, 0).Encode()
	require.ErrorContains(t, err, "the limit is 262144: lower compactor.max-segments or compactor.max-sources")
}

func TestGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		g := randomWork(r).Group()
		require.LessOrEqual(t, len(g), maxGroup)
		require.Empty(t, strings.Trim(g, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!-_.*'()/"), g)
	}
	w := func(tenant string, kind plan.Kind, l key.Level, at string, index int) Work {
		return Work{Tenant: tenant, Job: plan.Job{Kind: kind, Level: l, Window: l.WindowOf(clock(at).UnixMilli()), Slice: catalog.Slice{Index: index, Of: 2}}}
	}
	long := strings.Repeat("x", 140)
	first := w("a", plan.Merge, key.Part, "1:00", 0)
	for name, tc := range map[string]struct {
		w    Work
		same bool
	}{
		"part of another window of the day": {w("a", plan.Merge, key.Part, "23:00", 0), true},
		"the day":                           {w("a", plan.Merge, key.L24h, "0:00", 0), true},
		"a split":                           {w("a", plan.Split, key.L12h, "0:00", 0), true},
		"another day":                       {w("a", plan.Merge, key.Part, "25:00", 0), false},
		"another tenant":                    {w("b", plan.Merge, key.Part, "1:00", 0), false},
		"a slice":                           {w("a", plan.Cut, key.L12h, "0:00", 0), false},
		"an expiry":                         {w("a", plan.Expire, 0, "0:00", 0), false},
		"dropped tombstones":                {w("a", plan.Drop, 0, "0:00", 0), false},
	} {
		require.Equal(t, tc.same, tc.w.Group() == first.Group(), name)
	}
	require.NotEqual(t, w("a", plan.Cut, key.L12h, "0:00", 0).Group(), w("a", plan.Cut, key.L12h, "0:00", 1).Group())
	require.NotEqual(t, w(long+"1", plan.Merge, key.Part, "1:00", 0).Group(), w(long+"2", plan.Merge, key.Part, "1:00", 0).Group())
}

// TestIdentity: only what the job does counts.
func TestIdentity(t *testing.T) {
	id := func(change func(*Work)) string {
		w := goldenWork()
		w.Job.Drop = nil
		change(&w)
		id, err := w.Identity()
		require.NoError(t, err)
		require.Len(t, id, 64)
		return id
	}
	same := id(func(*Work) {})
	for name, tc := range map[string]struct {
		change func(*Work)
		same   bool
	}{
		"planned later":   {func(w *Work) { w.Job.Planned = day.Add(72 * time.Hour) }, true},
		"another reason":  {func(w *Work) { w.Job.Why = "late data" }, true},
		"other estimates": {func(w *Work) { w.Job.Samples, w.Job.Bytes = 1, 2 }, true},
		"tenant":          {func(w *Work) { w.Tenant = "team-b" }, false},
		"kind":            {func(w *Work) { w.Job.Kind = plan.Merge }, false},
		"level":           {func(w *Work) { w.Job.Level = key.L12h }, false},
		"window":          {func(w *Work) { w.Job.Window = key.L24h.WindowOf(clock("25:00").UnixMilli()) }, false},
		"fewer sources":   {func(w *Work) { w.Job.Sources.Segments = nil }, false},
		"other sources":   {func(w *Work) { w.Job.Sources.Blocks[0].ID = idAt(day, 3) }, false},
		"slice":           {func(w *Work) { w.Job.Slice.Index = 2 }, false},
		"split":           {func(w *Work) { w.Job.Split = idAt(day, 8) }, false},
		"tombstones":      {func(w *Work) { w.Job.Drop = []ulid.ULID{idAt(day, 1)} }, false},
	} {
		require.Equal(t, tc.same, id(tc.change) == same, name)
	}
}

func FuzzDecode(f *testing.F) {
	body, err := goldenWork().Encode()
	require.NoError(f, err)
	f.Add(body)
	f.Add([]byte(`{"version":1,"tenant":"a","kind":"drop","level":"part","drop":["01K1GZ8V6D8Q7N0XJ5W3C2B1A9"],"planned":"2026-03-02T00:10:00Z","why":""}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		w, err := Decode(body)
		if err != nil {
			require.ErrorIs(t, err, ErrNoJob)
			return
		}
		again, err := w.Encode()
		require.NoError(t, err)
		back, err := Decode(again)
		require.NoError(t, err)
		require.Equal(t, w.Job.String(), back.Job.String())
	})
}

func BenchmarkMessage(b *testing.B) {
	w := Work{Tenant: "team-a", Job: plan.Job{Kind: plan.Merge, Level: key.Part, Window: key.WindowOf(day.UnixMilli()), Planned: day, Why: "segments wait"}}
	r := rand.New(rand.NewPCG(1, 1))
	for range 64 {
		w.Job.Sources.Segments = append(w.Job.Sources.Segments, catalog.SegmentID{Window: w.Job.Window, ID: randomID(r)})
	}
	body, err := w.Encode()
	require.NoError(b, err)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			_, _ = w.Message()
		}
		b.ReportMetric(float64(len(body)), "bytes")
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			_, _ = Decode(body)
		}
	})
}

// TestMessageSchema holds the JSON Schema against the messages of any jobs.
func TestMessageSchema(t *testing.T) {
	var docs [][]byte
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		body, err := randomWork(r).Encode()
		require.NoError(t, err)
		docs = append(docs, body)
	}
	good, err := goldenWork().Encode()
	require.NoError(t, err)
	docs = append(docs, good)
	valid := len(docs)
	for _, c := range [][2]string{
		{`"version":1`, `"version":2`}, {`"kind"`, `"new":1,"kind"`}, {`"slice","level"`, `"melt","level"`}, {`"slice","level"`, `"expire","level"`},
		{`"24h","window"`, `"7d","window"`}, {`"team-a"`, `"team/a"`}, {`"12h/`, `"x/12h/`}, {`"of":4`, `"of":1`}, {`"split":"0`, `"split":"8`}, {`,"why"`, `,"whence"`},
	} {
		require.Contains(t, string(good), c[0])
		docs = append(docs, []byte(strings.Replace(string(good), c[0], c[1], 1)))
	}
	for i, wrong := range schematest.Validate(t, "../../schemas/job.schema.json", docs...) {
		require.Equal(t, i < valid, wrong == "", "%s: %s", docs[i], wrong)
	}
}
