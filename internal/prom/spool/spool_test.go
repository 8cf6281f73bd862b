package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/tests/support/appendertest"
)

// store is a sink that keeps samples as text, or is away.
type store struct {
	mu      sync.Mutex
	away    bool
	hang    bool // appends wait for the end of their context
	samples map[string]int
	order   []int64 // ms: the first sample of each append
	refuse  error
	room    int64 // bytes for an append; 0 = enough
}

var errAway = errors.New("the store is away")

func (s *store) Append(ctx context.Context, tenant string, _ int64, source func(*remotewrite.Generation, remotewrite.Rules, remotewrite.Room) (*remotewrite.Batch, error)) (refused, err error) {
	s.mu.Lock()
	away, hang := s.away, s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if away {
		return nil, errAway
	}
	limits := remotewrite.DefaultLimits()
	g := remotewrite.NewGeneration(1)
	room := cmp.Or(s.room, 1<<30)
	b, err := source(g, remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.Now())}, remotewrite.NewRoom(0, room, room, nil))
	if err != nil {
		return err, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	view := g.Table.View()
	name := func(ref series.Ref) string {
		lset := []string{view.Metrics[view.Metric(ref)]}
		for _, p := range view.Pairs(ref) {
			lset = append(lset, view.Names[p.Name]+"="+view.Values[p.Name][p.Value])
		}
		return fmt.Sprint(tenant, lset)
	}
	s.order = append(s.order, b.Floats[0].T)
	for i, f := range b.Floats {
		st := int64(0)
		if b.Starts != nil {
			st = b.Starts[i]
		}
		s.samples[fmt.Sprintf("%s %d %d %x", name(f.Ref), st, f.T, math.Float64bits(f.V))]++
	}
	for _, h := range b.Hists {
		s.samples[fmt.Sprintf("%s %d %d %v %v", name(h.Ref), h.ST, h.T, h.H, h.FH)]++
	}
	for _, e := range b.Exemplars {
		s.samples[fmt.Sprintf("%s %s %v %d", name(e.Ref), e.Labels, e.Value, e.Ts)]++
	}
	for _, m := range b.Metadata {
		s.samples[fmt.Sprint(tenant, m)]++
	}
	return s.refuse, nil
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *store) kept() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for k := range s.samples {
		out[k] = 1
	}
	return out
}

func newStore() *store { return &store{samples: map[string]int{}} }

// transaction has one sample of each kind at t (ms).
func transaction(t int64) *appender.Transaction {
	l := func(name string) labels.Labels { return labels.FromStrings(model.MetricNameLabel, name, "job", "j") }
	sample := func(name string, t int64, v float64, r *appender.Rare) appender.Sample {
		s := appendertest.Sample(l(name), t, v)
		s.Rare = r
		return s
	}
	return &appender.Transaction{
		Tenant: "team",
		Samples: []appender.Sample{
			sample("a_total", t, float64(t), &appender.Rare{ST: t - 1000}),
			sample("b", t, math.Float64frombits(value.StaleNaN), nil),
			sample("h", t, 0, &appender.Rare{Histogram: appender.Histogram{H: tsdbutil.GenerateTestHistogram(3)}}),
			sample("f", t, 0, &appender.Rare{Histogram: appender.Histogram{FH: tsdbutil.GenerateTestFloatHistogram(4)}}),
			sample("h", t+1, 0, &appender.Rare{Histogram: appender.Histogram{H: &histogram.Histogram{Sum: math.Float64frombits(value.StaleNaN)}}}),
		},
		Exemplars: []appender.Exemplar{{Sample: 0, Exemplar: exemplar.Exemplar{Labels: labels.FromStrings("trace_id", "x"), Value: 2, Ts: t, HasTs: true}}},
		Metadata:  []*appender.Family{{Metadata: segment.Metadata{Metric: "a_total", Type: "counter", Help: "A."}}},
	}
}

func open(t *testing.T, s Settings, sink Sink) *Spool {
	t.Helper()
	q, err := Open(s, sink, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return q
}

func settingsIn(dir string) Settings {
	s := settings.Default[Settings]()
	s.Dir = dir
	return s
}

// want is what transactions store.
func want(t *testing.T, times ...int64) map[string]int {
	t.Helper()
	s := newStore()
	q := open(t, settingsIn(filepath.Join(t.TempDir(), "q")), s)
	for _, at := range times {
		q.Add(transaction(at))
	}
	require.NoError(t, q.Close(t.Context()))
	return s.kept()
}

func TestStoredAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	s := newStore()
	q := open(t, settingsIn(dir), s)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()))
	require.Len(t, s.kept(), 7)
	require.NoError(t, q.Close(t.Context()))
	require.NoDirExists(t, dir, "the directory is made when it is needed")
}

// TestDemand: who waits ends the linger time, often at once and rarely in the long run.
func TestDemand(t *testing.T) {
	d := newDemand()
	d.waits = true
	now, n := time.UnixMilli(0), 0
	for range 600 { // ten times a second
		if d.ends(now, time.Second) {
			n++
		}
		now = now.Add(100 * time.Millisecond)
	}
	require.InDelta(t, maxEarly+60, n, 2)

	set := settingsIn(filepath.Join(t.TempDir(), "queue"))
	set.Linger = time.Hour
	s := newStore()
	q := open(t, set, s)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()))
	require.Len(t, s.kept(), 7)
	q.Add(transaction(2_000_000))
	require.NoError(t, q.Close(t.Context()), "a shutdown does not wait")
	require.Len(t, s.kept(), 13)
}

// TestLinger: samples wait for others as long as was said last, unless they fill a large part of
// the memory.
func TestLinger(t *testing.T) {
	set := settingsIn(filepath.Join(t.TempDir(), "queue"))
	set.Linger = time.Hour
	s := newStore()
	q := open(t, set, s)
	stored := func(n int) func() bool { return func() bool { return len(s.kept()) == n } }
	for range maxEarly + 1 { // once a second in the long run
		q.Add(transaction(1_000_000))
		require.NoError(t, q.SyncSoon(t.Context()))
	}
	clear(s.samples)
	q.SetLinger(time.Millisecond)
	q.Add(transaction(1_000_000))
	require.Eventually(t, stored(7), time.Minute, 10*time.Millisecond)
	q.SetLinger(time.Hour)
	require.NoError(t, q.Close(t.Context()))

	full := transaction(2_000_000)
	set.MaxMemory, set.Dir = 2*full.Bytes(), filepath.Join(t.TempDir(), "queue")
	q = open(t, set, s)
	q.Add(full)
	require.Eventually(t, stored(13), time.Minute, 10*time.Millisecond)
	require.NoError(t, q.Close(t.Context()))
}

// TestSlowAppendsStaySmall: the linger time grows while appends are quick, and a slow one ends
// that.
func TestSlowAppendsStaySmall(t *testing.T) {
	q := &Spool{set: Settings{Linger: time.Second}, pace: time.Second}
	q.SetLinger(3 * time.Second)
	for _, c := range []struct{ took, want time.Duration }{
		{200, 2000}, {400, 3000}, {700, 3000}, {800, 1000}, {300, 1000}, {0, 2000}, {0, 3000},
	} {
		q.adapt(c.took * time.Millisecond)
		require.Equal(t, c.want*time.Millisecond, q.linger(), "%v", c)
	}
	q.SetLinger(2 * time.Second)
	require.Equal(t, 2*time.Second, q.linger())
}

// TestOutage: what is added while the store is away is stored later, exactly as if it had never
// been away, after a restart of the process too.
func TestOutage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	s := newStore()
	s.away = true
	q := open(t, settingsIn(dir), s)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()), "it is on disk")
	require.True(t, q.down.Load())
	q.Add(transaction(2_000_000))
	require.NoError(t, q.Close(t.Context()))
	require.Empty(t, s.kept())

	_, err := Open(settingsIn(dir), s, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, err = Open(settingsIn(dir), s, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "does another process use it? set scrape.queue-dir")

	s.set(func(s *store) { s.away = false })
	require.Eventually(t, func() bool { return len(s.kept()) == 13 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, want(t, 1_000_000, 2_000_000), s.kept())
}

// TestStoreBack: the spool itself notices that the store is back.
func TestStoreBack(t *testing.T) {
	s := newStore()
	s.away = true
	q := open(t, settingsIn(filepath.Join(t.TempDir(), "queue")), s)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()))
	s.set(func(s *store) { s.away = false })
	q.Add(transaction(2_000_000))
	require.Eventually(t, func() bool { return len(s.kept()) == 13 && !q.down.Load() && q.disk.size() == 0 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, q.Close(t.Context()))
	require.Equal(t, want(t, 1_000_000, 2_000_000), s.kept())
}

// TestOrderOfFiles: a few files are stored one after another, and what is added meanwhile after
// them.
func TestOrderOfFiles(t *testing.T) {
	dir, s := filepath.Join(t.TempDir(), "queue"), newStore()
	s.away = true
	var want []int64
	for n := range int64(maxParallel - 2) {
		want = append(want, 1_000_000+n)
		q := open(t, settingsIn(dir), s)
		q.Add(transaction(1_000_000 + n))
		require.NoError(t, q.Close(t.Context()))
	}
	s.set(func(s *store) { s.away = false })
	q := open(t, settingsIn(dir), s)
	q.Add(transaction(2_000_000))
	require.NoError(t, q.Sync(t.Context()))
	require.Eventually(t, func() bool { return !q.down.Load() && q.disk.size() == 0 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, q.Close(t.Context()))
	require.Equal(t, append(want, 2_000_000), s.order)
}

// TestHangingStore: appends that take longer than the patience are on disk then, and at a shutdown
// at once.
func TestHangingStore(t *testing.T) {
	set := settingsIn(filepath.Join(t.TempDir(), "queue"))
	set.Patience = 10 * time.Millisecond
	s := newStore()
	s.hang = true
	q := open(t, set, s)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()))
	require.Positive(t, q.disk.size())
	require.NoError(t, q.Close(t.Context()))

	set.Patience = time.Hour
	set.Dir = filepath.Join(t.TempDir(), "queue")
	q = open(t, set, s)
	q.Add(transaction(1_000_000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, q.Close(ctx))
	require.Positive(t, q.disk.size())
}

// counters returns the counters of a registry by name.
func counters(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
	}
	return got
}

func TestFullQueue(t *testing.T) {
	set := settingsIn(filepath.Join(t.TempDir(), "queue"))
	s := newStore()
	s.away = true
	reg := prometheus.NewRegistry()
	q, err := Open(set, s, reg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()))
	q.disk.max = q.disk.size() + 10
	q.Add(transaction(2_000_000))
	require.NoError(t, q.Close(t.Context()))
	got := counters(t, reg)
	require.Equal(t, 5.0, got["promlake_queue_dropped_samples_total"])
	require.Equal(t, 5.0, got["promlake_queue_spilled_samples_total"])
	require.LessOrEqual(t, q.disk.size(), q.disk.max)
}

// TestMemoryLimit: what waits in memory is bounded. Who adds more waits until the store has taken
// some, or until it is on disk because the store hangs; nothing is dropped.
func TestMemoryLimit(t *testing.T) {
	set := settingsIn(filepath.Join(t.TempDir(), "queue"))
	set.Patience, set.MaxMemory = 100*time.Millisecond, transaction(1_000_000).Bytes()
	s := newStore()
	reg := prometheus.NewRegistry()
	q, err := Open(set, s, reg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var adding sync.WaitGroup
	for i := range int64(10) {
		adding.Go(func() { q.Add(transaction((1 + i) * 1_000_000)) })
	}
	adding.Wait()
	require.NoError(t, q.Sync(t.Context()))
	require.Eventually(t, func() bool { return counters(t, reg)["promlake_queue_stored_samples_total"] >= 50 }, 2*time.Minute, 10*time.Millisecond)
	all := len(s.kept())

	s.set(func(s *store) { s.hang = true })
	for i := range int64(4) {
		q.Add(transaction((100 + i) * 1_000_000)) // returns because the one before is on disk
	}
	got := counters(t, reg)
	require.Zero(t, got["promlake_queue_dropped_samples_total"])
	require.GreaterOrEqual(t, got["promlake_queue_full_waits_total"], 3.0)
	require.GreaterOrEqual(t, got["promlake_queue_spilled_samples_total"], 15.0)
	s.set(func(s *store) { s.hang = false })
	require.Eventually(t, func() bool { return len(s.kept()) > all && q.disk.count() == 0 }, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, q.Close(t.Context()))
	require.Zero(t, q.memory)
	require.Zero(t, counters(t, reg)["promlake_queue_dropped_samples_total"])
}

// TestPartlyRefused: what the store refuses of an append does not count as stored, be it appended
// from memory or from the directory.
func TestPartlyRefused(t *testing.T) {
	for _, away := range []bool{false, true} {
		s := newStore()
		s.away, s.refuse = away, errors.New("a label is too long")
		reg := prometheus.NewRegistry()
		q, err := Open(settingsIn(filepath.Join(t.TempDir(), "queue")), s, reg, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		tx := transaction(1_000_000)
		tx.Samples = append(tx.Samples, appendertest.Sample(labels.FromStrings(model.MetricNameLabel, "long", "job", strings.Repeat("x", 1<<16)), 1_000_000, 1))
		q.Add(tx)
		require.NoError(t, q.Sync(t.Context()))
		s.set(func(s *store) { s.away = false })
		require.Eventually(t, func() bool { return len(s.kept()) == 7 && q.disk.size() == 0 }, time.Minute, 10*time.Millisecond)
		require.NoError(t, q.Close(t.Context()))
		got := counters(t, reg)
		require.Equal(t, 5.0, got["promlake_queue_stored_samples_total"], "away %t", away)
		require.Equal(t, 1.0, got["promlake_queue_refused_appends_total"])
		require.Zero(t, got["promlake_queue_dropped_samples_total"])
	}
}

// TestDirectoryIsMade: with the directories above it.
func TestDirectoryIsMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "queue")
	s := newStore()
	s.away = true
	q := open(t, settingsIn(dir), s)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Close(t.Context()))
	require.DirExists(t, dir)
	require.Positive(t, q.disk.size())
}

// TestRefusedAsAWhole: samples that the sink cannot read at all count as dropped, and not as
// stored.
func TestRefusedAsAWhole(t *testing.T) {
	s := newStore()
	s.room = 1
	reg := prometheus.NewRegistry()
	q, err := Open(settingsIn(filepath.Join(t.TempDir(), "queue")), s, reg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()))
	require.NoError(t, q.Close(t.Context()))
	require.Empty(t, s.kept())
	got := counters(t, reg)
	require.Equal(t, 5.0, got["promlake_queue_dropped_samples_total"])
	require.Zero(t, got["promlake_queue_stored_samples_total"])
	require.Equal(t, 1.0, got["promlake_queue_refused_appends_total"])
}

// TestDamagedFile: a damaged file is kept aside, and the files after it are stored.
func TestDamagedFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	s := newStore()
	s.away = true
	for _, at := range []int64{1_000_000, 2_000_000} {
		q := open(t, settingsIn(dir), s)
		q.Add(transaction(at))
		require.NoError(t, q.Close(t.Context()))
	}
	first := filepath.Join(dir, fmt.Sprintf("%020d%s", 1, suffix))
	b, err := os.ReadFile(first)
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, os.WriteFile(first, b, 0o600))
	s.set(func(s *store) { s.away = false })
	q := open(t, settingsIn(dir), s)
	require.Eventually(t, func() bool { return len(s.kept()) == 7 && q.disk.size() == 0 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, q.Close(t.Context()))
	require.Equal(t, want(t, 2_000_000), s.kept())
	require.FileExists(t, filepath.Join(dir, fmt.Sprintf("%020d%s", 1, damagedSuffix)))
}

// TestUnwritableQueue: when neither the store nor the disk takes samples, later ones are still
// offered to the store.
func TestUnwritableQueue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	s := newStore()
	s.away = true
	q := open(t, settingsIn(filepath.Join(t.TempDir(), "queue")), s)
	q.disk.dir = filepath.Join(file, "queue")
	q.Add(transaction(1_000_000))
	require.NoError(t, q.Sync(t.Context()))
	s.set(func(s *store) { s.away = false })
	q.Add(transaction(2_000_000))
	require.NoError(t, q.Close(t.Context()))
	require.Equal(t, want(t, 2_000_000), s.kept())
}

// TestFileFormat pins the bytes of a file of the queue.
func TestFileFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	d, err := openDisk(dir, 1<<20)
	require.NoError(t, err)
	require.NoError(t, d.put(record{tenant: "team", samples: 3, message: []byte("message")}))
	b, err := os.ReadFile(filepath.Join(dir, "00000000000000000001.queue"))
	require.NoError(t, err)
	require.Equal(t, "504c5131", fmt.Sprintf("%x", b[:4]))
	require.Equal(t, "\x04team\x03\x07\x18message", string(b[8:]))
	r, err := d.read(d.oldest(1, 0)[0])
	require.NoError(t, err)
	require.Equal(t, record{tenant: "team", samples: 3, message: []byte("message")}, r)
	require.NoError(t, d.close())
}

// TestTenantsAreApart: the samples of each tenant go to it, also by way of the directory, and those
// of one tenant stay in their order.
func TestTenantsAreApart(t *testing.T) {
	s := newStore()
	q := open(t, settingsIn(filepath.Join(t.TempDir(), "queue")), s)
	add := func(tenant string, at int64) {
		require.NoError(t, q.AddTo(tenant)(transaction(at)))
	}
	for i := range int64(30) {
		add(fmt.Sprint("t", i%10), 1_000_000+i)
	}
	require.NoError(t, q.Sync(t.Context()))
	s.set(func(s *store) { s.away = true })
	add("a", 2_000_000)
	add("b", 2_000_000)
	require.NoError(t, q.Sync(t.Context()))
	require.True(t, q.down.Load())
	s.set(func(s *store) { s.away = false })
	require.Eventually(t, func() bool { return q.disk.size() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, q.Close(t.Context()))
	got := map[string]int{}
	for k := range s.kept() {
		tenant, _, found := strings.Cut(k, "[")
		if found {
			got[tenant]++
		}
	}
	require.Len(t, got, 12)
	require.Equal(t, got["a"], got["b"])
	require.Equal(t, got["t0"], got["t9"])

	var txs []*appender.Transaction
	for i, tenant := range []string{"b", "a", "b", "a", "b"} {
		x := transaction(int64(i))
		x.Tenant = tenant
		txs = append(txs, x)
	}
	var order []string
	for _, part := range parts(txs) {
		for _, x := range part {
			order = append(order, fmt.Sprint(x.Tenant, x.Samples[0].T))
			require.Equal(t, part[0].Tenant, x.Tenant)
		}
	}
	require.Equal(t, []string{"a1", "a3", "b0", "b2", "b4"}, order)
}
