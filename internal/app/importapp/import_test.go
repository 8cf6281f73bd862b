package importapp_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

const name = "team-a"

// start is that of the histories, and the store's clock is three days later.
var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func now() time.Time { return start.Add(72 * time.Hour) }

// hours is a time in ms.
func hours(n float64) int64 { return start.UnixMilli() + int64(n*3600_000) }

func newStore(faults func(memstore.Call) memstore.Fault) *memstore.Store {
	return memstore.New(memstore.Settings{Now: now, Faults: faults, Immutable: func(k string) bool {
		return strings.HasPrefix(k, "v1/") && k != key.Manifest(name)
	}})
}

func options() importapp.Settings {
	s := settings.Default[importapp.Settings]()
	s.Tenant, s.MemoryLimit, s.Concurrency = name, 256<<20, 2
	return s
}

// blocks writes a history of 30 hours as three blocks: the first day of all series, an overlapping
// block of every other series, and the rest, of which a part is deleted. It returns the directory
// and upstream's views.
func blocks(t *testing.T) (string, oracle) {
	t.Helper()
	dir := t.TempDir()
	all := promblocktest.History(1, hours(0), 30*time.Hour)
	first := promblocktest.Write(t, dir, hours(0), hours(24), all)
	second := promblocktest.Write(t, dir, hours(19.5), hours(26), promblocktest.Part(all, 0))
	third := promblocktest.Write(t, dir, hours(24), hours(30), all)
	deleted := labels.MustNewMatcher(labels.MatchEqual, "instance", "b")
	b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), third, nil, nil)
	require.NoError(t, err)
	require.NoError(t, b.Delete(t.Context(), hours(27), hours(28), deleted))
	require.NoError(t, b.Close())
	return dir, oracle{promblocktest.Queryable(t, first, second, third), promblocktest.Without(all, hours(27), hours(28), deleted)}
}

// oracle is upstream's view of the blocks, and of the same samples without its TSDB, whose
// iterators panic in some queries of histograms that are stale midway. Then the other view counts.
type oracle struct {
	blocks promblocktest.Blocks
	plain  storage.Queryable
}

func importInto(t *testing.T, store objstore.Store, dir string) *importapp.Outcome {
	t.Helper()
	o, err := importapp.RunInto(t.Context(), store, options(), importapp.TSDB{Source: dir}, time.Now, nil)
	require.NoError(t, err)
	return o
}

// TestDryRunBytes: the store grows by what a dry run has promised, for values of any kind.
func TestDryRunBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	kinds := map[string]func(k int) float64{
		"constant": func(int) float64 { return 1 },
		"noise":    func(int) float64 { return r.NormFloat64() },
		"counter":  func(k int) float64 { return float64(10*k + r.IntN(10)) },
	}
	dirs := map[string]string{}
	dirs["history"], _ = blocks(t)
	for kind, value := range kinds {
		for _, count := range []int{1, 4, 400, 5760} {
			var all []promblocktest.Series
			for i := range max(20, 2000/count) {
				s := promblocktest.Series{Labels: labels.FromStrings("__name__", "m", "pod", fmt.Sprintf("pod-%x", r.Uint64()), "i", strconv.Itoa(i))}
				for k := range count {
					s.Samples = append(s.Samples, promblocktest.Sample{Time: hours(0) + int64(k)*15_000, V: value(k)})
				}
				all = append(all, s)
			}
			dir := t.TempDir()
			promblocktest.Write(t, dir, hours(0), hours(24), all)
			dirs[fmt.Sprint(kind, count)] = dir
		}
	}
	for name, dir := range dirs {
		dry := options()
		dry.DryRun = true
		o, err := importapp.RunInto(t.Context(), newStore(nil), dry, importapp.TSDB{Source: dir}, time.Now, nil)
		require.NoError(t, err)
		least, most := o.Bytes()
		require.Contains(t, o.Text(), human.Bytes(least)+" to "+human.Bytes(most))
		wrote := importInto(t, newStore(nil), dir).Report().Bytes
		t.Log(name, least, wrote, most)
		require.GreaterOrEqual(t, wrote, least, name)
		require.LessOrEqual(t, wrote, most, name)
	}
}

func compactAll(t *testing.T, store objstore.Store) {
	t.Helper()
	st, err := compact.New(compact.Settings{TempDir: t.TempDir()}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), now)
	require.NoError(t, err)
	require.NoError(t, st.UntilIdle(t.Context(), nil, nil))
}

// questions are random queries over the history.
func questions(seed uint64, n int) []promblocktest.Question {
	r := rand.New(rand.NewPCG(seed, 3))
	selectors := []string{"requests_total", "temperature", "latency", "sizes", "changes", `requests_total{instance="b"}`, `{instance=~"a|b"}`, `{cluster="west",n!="3"}`, `latency{instance="b"}`}
	shapes := []string{
		"%s", "rate(%s[7m])", "increase(%s[1h])", "count_over_time(%s[20m])", "last_over_time(%s[2h])", "sum by (instance) (rate(%s[10m]))", "max_over_time(%s[45m])", "resets(%s[3h])",
		"count by (job) (%s)", "histogram_quantile(0.9, %s)", "histogram_count(rate(%s[15m]))", "sum_over_time(%s[13m])", "%s offset 3h", "delta(%s[1h])", "changes(%s[90m])", "present_over_time(%s[4m])", "timestamp(%s)",
	}
	out := make([]promblocktest.Question, n)
	for i := range out {
		q := promblocktest.Question{Text: fmt.Sprintf(shapes[r.IntN(len(shapes))], selectors[r.IntN(len(selectors))])}
		q.From = hours(-1) + r.Int64N(32*3600_000)
		q.To = q.From + r.Int64N(6*3600_000)
		q.Step = time.Duration(1+r.IntN(1800)) * time.Second
		out[i] = q
	}
	return out
}

// ask returns the answer of an engine.
func ask(t *testing.T, q promblocktest.Question, e promql.QueryEngine, from storage.Queryable) string {
	t.Helper()
	text, err := q.Ask(tenant.With(t.Context(), name), e, from)
	require.NoError(t, err)
	return text
}

// same asks random questions of a store and of upstream's view.
func same(t *testing.T, store objstore.Store, want oracle, seed uint64, n int) {
	t.Helper()
	st, err := query.New(query.Settings{MinPushedSamples: -1}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), now)
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	set := st.Settings()
	upstream := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: set.MaxSamples, Timeout: set.Timeout, LookbackDelta: set.LookbackDelta,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(query.ParserOptions()),
	})
	answers := 0
	for _, q := range questions(seed, n) {
		expected := ask(t, q, upstream, want.blocks)
		if strings.Contains(expected, "unexpected error: runtime error") {
			expected = ask(t, q, upstream, want.plain)
		}
		require.Equal(t, expected, ask(t, q, st.Engine(), st), q.String())
		if expected != "" {
			answers++
		}
	}
	require.Greater(t, answers, n/2, "most queries have an answer")
}

// samplesOf returns the number of samples in live blocks.
func samplesOf(t *testing.T, store objstore.Store) (n int64) {
	t.Helper()
	m, _, err := catalog.ReadManifest(t.Context(), store, name)
	require.NoError(t, err)
	for _, b := range m.Blocks {
		n += b.Samples
	}
	return n
}

// TestAnswersAreThoseOfTheSource holds that random queries have the answers of upstream's engine
// over the source, bit for bit, after the import and after compaction.
func TestAnswersAreThoseOfTheSource(t *testing.T) {
	dir, want := blocks(t)
	store := newStore(nil)
	o := importInto(t, store, dir)
	require.Positive(t, o.Report().Equal, "the blocks overlap")
	n := samplesOf(t, store)
	require.Equal(t, o.Report().Samples, n)
	same(t, store, want, 1, 60)

	compactAll(t, store)
	m, _, err := catalog.ReadManifest(t.Context(), store, name)
	require.NoError(t, err)
	require.Len(t, m.Blocks, 2, "two days")
	require.Equal(t, n, samplesOf(t, store))
	same(t, store, want, 2, 60)

	again := importInto(t, store, dir)
	require.Zero(t, again.Report(), "nothing is left to import")
	after, _, err := catalog.ReadManifest(t.Context(), store, name)
	require.NoError(t, err)
	require.Equal(t, m.Generation, after.Generation)
	require.Empty(t, store.Violations())
}

// TestKilled holds that an import that dies at any point and is repeated writes each sample once.
func TestKilled(t *testing.T) {
	dir, want := blocks(t)
	calls := 0
	clean := newStore(func(c memstore.Call) memstore.Fault {
		if strings.HasPrefix(c.Key, "v1/") { // after the check of the store
			calls++
		}
		return memstore.Fault{}
	})
	opts := options()
	opts.Concurrency, opts.Level = 1, "2h"
	run := func(store objstore.Store) (*importapp.Outcome, error) {
		return importapp.RunInto(t.Context(), store, opts, importapp.TSDB{Source: dir}, time.Now, nil)
	}
	_, err := run(clean)
	require.NoError(t, err)
	total, samples := calls, samplesOf(t, clean)
	const points = 12
	for i := range points {
		when := memstore.Before
		if i%2 == 1 {
			when = memstore.After
		}
		t.Run(fmt.Sprint(i, when), func(t *testing.T) {
			n, dead := 0, false
			at := total*i/points + i/2
			store := newStore(func(c memstore.Call) memstore.Fault {
				if at < 0 || !strings.HasPrefix(c.Key, "v1/") {
					return memstore.Fault{}
				}
				if n++; n <= at {
					return memstore.Fault{}
				}
				first := !dead
				dead = true
				if first && when == memstore.After {
					return memstore.Fault{Err: context.DeadlineExceeded, When: memstore.After}
				}
				return memstore.Fault{Err: context.DeadlineExceeded}
			})
			_, err := run(store)
			require.Error(t, err)
			if i > 0 {
				require.ErrorContains(t, err, "the same command continues it")
			}
			at = -1
			_, err = run(store)
			require.NoError(t, err)
			require.Equal(t, samples, samplesOf(t, store), "no sample twice, none lost")
			m, _, err := catalog.ReadManifest(t.Context(), store, name)
			require.NoError(t, err)
			o, err := run(store)
			require.NoError(t, err)
			require.Zero(t, o.Report())
			require.Empty(t, store.Violations())
			after, _, err := catalog.ReadManifest(t.Context(), store, name)
			require.NoError(t, err)
			require.Equal(t, m.Generation, after.Generation)
			if i == 5 {
				same(t, store, want, 3, 20)
			}
		})
	}
}

// TestTheStoreWins holds that samples which the store has stay, before and after compaction,
// however late the import comes.
func TestTheStoreWins(t *testing.T) {
	dir := t.TempDir()
	at := hours(1)
	imported := promblocktest.Series{Labels: labels.FromStrings("__name__", "up", "job", "x")}
	for i := range int64(10) {
		imported.Samples = append(imported.Samples, promblocktest.Sample{Time: at + i*60_000, V: 1})
	}
	promblocktest.Write(t, dir, hours(0), hours(2), []promblocktest.Series{imported})
	clock := now().Add(-time.Hour)
	store := memstore.New(memstore.Settings{Now: func() time.Time { return clock }})
	row := segment.Row{Labels: imported.Labels, Floats: []segment.Float{{T: at + 120_000, V: 7}, {T: at + 150_000, V: 8}}}
	require.NoError(t, compacttest.Put(t.Context(), store, name, key.WindowOf(at), ulid.MustNew(1, nil), []segment.Row{row}))
	clock = now()
	opts := options()
	opts.DryRun = true
	o, err := importapp.RunInto(t.Context(), store, opts, importapp.TSDB{Source: dir}, time.Now, nil)
	require.NoError(t, err)
	require.Contains(t, o.Text(), "1 windows have 1 segments")
	require.Regexp(t, `to import: series +1\n`, o.Text())
	require.Contains(t, o.Text(), "a month")
	require.Equal(t, int64(0), samplesOf(t, store))

	importInto(t, store, dir)
	want := imported
	want.Samples = slices.Clone(imported.Samples)
	want.Samples[2].V = 7
	want.Samples = slices.Insert(want.Samples, 3, promblocktest.Sample{Time: at + 150_000, V: 8})
	check := func() {
		t.Helper()
		require.Equal(t, sum(t, promblocktest.Plain{want}, nil), sum(t, nil, store))
	}
	check()
	compactAll(t, store)
	check()
	require.Equal(t, int64(11), samplesOf(t, store))
}

// sum adds up the samples of a history, or of a store.
func sum(t *testing.T, from storage.Queryable, store objstore.Store) string {
	t.Helper()
	st, err := query.New(query.Settings{}, newStore(nil), prometheus.NewRegistry(), slog.New(slog.DiscardHandler), now)
	if store != nil {
		st, err = query.New(query.Settings{}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), now)
		from = st
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	q := promblocktest.Question{Text: "sum_over_time(up[1h]) * 1000 + count_over_time(up[1h])", From: hours(1.5), To: hours(1.5), Step: time.Minute}
	return ask(t, q, promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(query.ParserOptions())}), from)
}

// TestSlices holds that windows whose series need more memory than there is are written in slices,
// and that an import which was cut short is continued with another memory.
func TestSlices(t *testing.T) {
	dir, want := blocks(t)
	set := bulk.Settings{Level: key.L12h, MemoryBytes: 12 << 10, Concurrency: 1, WindowDelay: time.Minute, MaxSamples: 20_000}
	plan := func(store objstore.Store) bulk.Plan {
		inputs, err := importapp.TSDB{Source: dir}.Inputs(t.Context())
		require.NoError(t, err)
		past, err := bulk.ReadPast(t.Context(), store, name)
		require.NoError(t, err)
		p, err := bulk.MakePlan(set, now(), inputs, past)
		require.NoError(t, err)
		return p
	}
	puts, limit := 0, 0
	store := newStore(func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Put && strings.HasPrefix(c.Key, key.ImportsPrefix(name)) {
			if puts++; puts == limit {
				return memstore.Fault{Err: context.DeadlineExceeded}
			}
		}
		return memstore.Fault{}
	})
	limit = 3
	_, err := bulk.Run(t.Context(), set, store, name, plan(store), nil)
	require.Error(t, err)
	set.MemoryBytes = 1 << 30
	left := plan(store)
	require.NotZero(t, left.Present)
	_, err = bulk.Run(t.Context(), set, store, name, left, nil)
	require.NoError(t, err)
	require.Empty(t, plan(store).Units)
	m, _, err := catalog.ReadManifest(t.Context(), store, name)
	require.NoError(t, err)
	require.Positive(t, slices.IndexFunc(m.Blocks, func(b catalog.Block) bool { return b.Slice.Of > 1 })+1, "slices")
	whole := newStore(nil)
	importInto(t, whole, dir)
	require.Equal(t, samplesOf(t, whole), samplesOf(t, store))
	same(t, store, want, 4, 20)
	compactAll(t, store)
	same(t, store, want, 5, 20)

	set.MemoryBytes = 1
	_, err = bulk.Run(t.Context(), set, newStore(nil), name, plan(newStore(nil)), nil)
	var memory *bulk.MemoryError
	require.ErrorAs(t, err, &memory)
	require.ErrorContains(t, err, "raise --memory-limit")
}

// TestRetention holds that windows past the tenant's retention are not imported, and that an open
// window becomes parts which are not imported again when it is closed.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	promblocktest.Write(t, dir, hours(0), hours(73), promblocktest.History(2, hours(0), 73*time.Hour)[:2])
	store := newStore(nil)
	opts := options()
	opts.TenantRetention = map[string]time.Duration{name: 40 * time.Hour}
	o, err := importapp.RunInto(t.Context(), store, opts, importapp.TSDB{Source: dir}, time.Now, nil)
	require.NoError(t, err)
	require.Contains(t, o.Text(), "samples past the retention")
	m, _, err := catalog.ReadManifest(t.Context(), store, name)
	require.NoError(t, err)
	levels := map[key.Level]int{}
	for _, b := range m.Blocks {
		levels[b.Level]++
		require.GreaterOrEqual(t, b.MinT, hours(24))
	}
	require.Equal(t, map[key.Level]int{key.L12h: 3, key.L2h: 5, key.Part: 2}, levels)
	n := samplesOf(t, store)
	opts.TenantRetention = nil
	inputs, err := importapp.TSDB{Source: dir}.Inputs(t.Context())
	require.NoError(t, err)
	past, err := bulk.ReadPast(t.Context(), store, name)
	require.NoError(t, err)
	later, err := bulk.MakePlan(bulk.Settings{Level: key.L12h, WindowDelay: time.Minute}, now().Add(48*time.Hour), inputs, past)
	require.NoError(t, err)
	require.Len(t, later.Units, 2, "what was past the retention")
	require.InDelta(t, n, later.Present, float64(n)/20)
}
