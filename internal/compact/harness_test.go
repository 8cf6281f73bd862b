package compact

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
)

// Tests tell the time as those of plans do.
var (
	day   = compacttest.Day
	clock = compacttest.Clock
	idAt  = compacttest.ID
)

// lake is a store with a clock, and what its readers must see.
type lake struct {
	t     *testing.T
	store objstore.Store
	mem   *memstore.Store                    // store, or nil
	each  func(memstore.Call) memstore.Fault // nil: no faults
	mu    sync.Mutex                         // held while each is called
	quiet bool                               // no faults now
	now   time.Time
	ids   *rand.ChaCha8
	want  compacttest.Answer
	reg   *prometheus.Registry // of the last stage
}

func newLake(t *testing.T) *lake {
	l := &lake{t: t, now: day, ids: rand.NewChaCha8([32]byte{1}), want: compacttest.NewAnswer()}
	l.mem = memstore.New(memstore.Settings{
		Now: l.clock, Faults: l.fault, DeletedForever: true,
		Immutable: func(k string) bool { return !strings.HasSuffix(k, "/manifest.json") },
	})
	l.store = l.mem
	t.Cleanup(func() { require.Empty(t, l.mem.Violations()) })
	return l
}

func (l *lake) clock() time.Time { return l.now }

func (l *lake) fault(c memstore.Call) memstore.Fault {
	if l.each == nil || l.quiet {
		return memstore.Fault{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.each(c)
}

func (l *lake) at(hhmm string) *lake {
	l.now = clock(hhmm)
	return l
}

// stage returns a stage over the lake whose identifiers follow from the seed.
func (l *lake) stage(set Settings, seed byte) *Stage {
	l.t.Helper()
	set.Entropy, set.TempDir = rand.NewChaCha8([32]byte{seed}), l.t.TempDir()
	if set.Concurrency == 0 {
		set.Concurrency = 1
	}
	l.reg = prometheus.NewRegistry()
	s, err := New(set, l.store, l.reg, slog.New(slog.DiscardHandler), l.clock)
	require.NoError(l.t, err)
	return s
}

// write ingests rows now, one segment per window, and expects them to count from now on.
func (l *lake) write(tenant string, rows []segment.Row, metadata ...segment.Metadata) {
	l.t.Helper()
	byWindow := map[key.Window][]segment.Row{}
	for _, r := range rows {
		for w, part := range windows(r) {
			byWindow[w] = append(byWindow[w], part)
		}
	}
	id, err := ulid.New(ulid.Timestamp(l.now), l.ids)
	require.NoError(l.t, err)
	var order []key.Window
	for w := range byWindow {
		order = append(order, w)
	}
	slices.Sort(order)
	for _, w := range order {
		require.NoError(l.t, compacttest.Put(l.t.Context(), l.store, tenant, w, id, byWindow[w], metadata...))
	}
	require.NoError(l.t, l.want.Add(rows, nil))
	for _, m := range metadata {
		l.want.Metadata[m.Metric] = m
	}
}

// windows cuts a row into those of single windows.
func windows(r segment.Row) map[key.Window]segment.Row {
	out := map[key.Window]segment.Row{}
	at := func(t int64, f func(*segment.Row)) {
		w := key.WindowOf(t)
		part, ok := out[w]
		if !ok {
			part.Labels = r.Labels
		}
		f(&part)
		out[w] = part
	}
	for _, f := range r.Floats {
		at(f.T, func(p *segment.Row) { p.Floats = append(p.Floats, f) })
	}
	for _, h := range r.Hists {
		at(h.T, func(p *segment.Row) { p.Hists = append(p.Hists, h) })
	}
	for _, e := range r.Exemplars {
		at(e.Ts, func(p *segment.Row) { p.Exemplars = append(p.Exemplars, e) })
	}
	return out
}

// series are n series, each with a sample at every time; the first of ten has histograms, the
// second an exemplar.
func seriesRows(n int, value float64, times ...time.Time) []segment.Row {
	var out []segment.Row
	for i := range n {
		r := segment.Row{Labels: labels.FromStrings("__name__", fmt.Sprintf("m%d", i%7), "i", fmt.Sprint(i))}
		for k, t := range times {
			ms := t.UnixMilli()
			if i%10 == 0 {
				r.Hists = append(r.Hists, segment.Hist{T: ms, H: tsdbutil.GenerateTestHistogram(int64(value) + int64(k))})
				continue
			}
			r.Floats = append(r.Floats, segment.Float{T: ms, V: value + float64(i*k)/10})
			if i%10 == 1 {
				r.Exemplars = append(r.Exemplars, exemplar.Exemplar{Ts: ms, Value: value, HasTs: true, Labels: labels.FromStrings("trace_id", fmt.Sprint(k))})
			}
		}
		out = append(out, r)
	}
	return out
}

// burst is a series with a sample each second for 40 s, enough for rows in both rollups.
func burst(from time.Time) segment.Row {
	r := segment.Row{Labels: labels.FromStrings("__name__", "m1", "i", "100")}
	for i := range int64(1024) {
		r.Floats = append(r.Floats, segment.Float{T: from.UnixMilli() + 1000*i + 1, V: float64(i)})
	}
	return r
}

// scrape writes n series every step from one time to before another, each flush when its samples
// are made.
func (l *lake) scrape(tenant, from, to string, step time.Duration, n int) {
	l.t.Helper()
	for t := clock(from); t.Before(clock(to)); t = t.Add(step) {
		l.now = t
		l.write(tenant, seriesRows(n, float64(t.Unix()%1000), t), segment.Metadata{Metric: "m1", Type: "gauge", Help: t.Format(time.Kitchen)})
	}
}

// check reads the lake and compares it with the samples that were written and not deleted.
func (l *lake) check(tenant string) {
	l.t.Helper()
	defer func(was bool) { l.quiet = was }(l.quiet)
	l.quiet = true
	got, err := compacttest.Read(l.t.Context(), l.store, tenant)
	require.NoError(l.t, err)
	require.Equal(l.t, l.want, got)
}

// delete commits a tombstone.
func (l *lake) delete(tenant string, matcher catalog.Matcher, from, to string) {
	l.t.Helper()
	mint, maxt := clock(from).UnixMilli(), clock(to).UnixMilli()
	m, err := catalog.Delete(l.t.Context(), l.store, tenant, catalog.Deletion{Sets: [][]catalog.Matcher{{matcher}}, MinT: mint, MaxT: maxt})
	require.NoError(l.t, err)
	tomb := m.Tombstones[len(m.Tombstones)-1]
	for k, samples := range l.want.Samples {
		if !compacttest.Matches(tomb, parse(k)) {
			continue
		}
		for t := range samples {
			if tomb.Overlaps(t, t) {
				delete(samples, t)
			}
		}
		if len(samples) == 0 {
			delete(l.want.Samples, k)
		}
		l.want.Exemplars[k] = slices.DeleteFunc(l.want.Exemplars[k], func(e string) bool {
			var t int64
			_, err := fmt.Sscanf(e, "%d", &t)
			require.NoError(l.t, err)
			return tomb.Overlaps(t, t)
		})
		if len(l.want.Exemplars[k]) == 0 {
			delete(l.want.Exemplars, k)
		}
	}
}

// parse is the inverse of labels.Labels.String for the labels of seriesRows.
func parse(s string) labels.Labels {
	var name, i string
	if _, err := fmt.Sscanf(strings.NewReplacer("{__name__=", "", ", i=", " ", "}", "").Replace(s), "%q %q", &name, &i); err != nil {
		panic(err)
	}
	return labels.FromStrings("__name__", name, "i", i)
}

// untilIdle compacts all there is to compact now.
func (l *lake) untilIdle(s *Stage) {
	l.t.Helper()
	require.NoError(l.t, s.UntilIdle(l.t.Context(), nil, nil))
}

// snapshot is all that is live.
func (l *lake) snapshot(tenant string) catalog.Snapshot {
	l.t.Helper()
	defer func(was bool) { l.quiet = was }(l.quiet)
	l.quiet = true
	snap, err := catalog.Take(l.t.Context(), l.store, tenant, key.MinTime, key.MaxTime)
	require.NoError(l.t, err)
	return snap
}

// levels are the live blocks in short.
func (l *lake) levels(tenant string) (out []string) {
	l.t.Helper()
	for _, b := range l.snapshot(tenant).Blocks {
		s := b.Level.String() + " " + b.Window.String()
		if b.Slice.Of > 1 {
			s += " " + b.Slice.String()
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}
