package compact

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/compacttest"
)

// fleet makes the samples of n series, one every ten seconds: counters, gauges of a few decimals,
// constants and a few arbitrary doubles.
type fleet struct {
	r    *rand.Rand
	vals []float64
	lset []labels.Labels
}

func newFleet(n int) *fleet {
	f := &fleet{r: rand.New(rand.NewPCG(1, 1)), vals: make([]float64, n)}
	for i := range n {
		f.lset = append(f.lset, labels.FromStrings("__name__", fmt.Sprintf("metric_%d", i%200), "job", "node",
			"instance", fmt.Sprintf("host-%d:9100", i/200), "device", fmt.Sprintf("disk%d", i%5)))
	}
	return f
}

// rows are the samples of [from, to), ms.
func (f *fleet) rows(from, to int64) []segment.Row {
	out := make([]segment.Row, len(f.vals))
	for i := range out {
		out[i].Labels = f.lset[i]
		for t := from; t < to; t += 10_000 {
			out[i].Floats = append(out[i].Floats, segment.Float{T: t, V: f.next(i)})
		}
	}
	return out
}

func (f *fleet) next(i int) float64 {
	v := &f.vals[i]
	switch i % 5 {
	case 0, 1:
		*v += float64(f.r.IntN(1000))
	case 2:
		*v = math.Round((*v+f.r.Float64()-0.5)*100) / 100
	case 3:
		*v = f.r.NormFloat64()
	}
	return *v
}

// benchLake is a lake in a directory, with one segment per flush interval.
func benchLake(b *testing.B, series int, total, flush time.Duration) (*Stage, func(time.Time)) {
	b.Helper()
	store, err := filestore.New(b.TempDir())
	require.NoError(b, err)
	f, now := newFleet(series), day
	for at := day; at.Before(day.Add(total)); at = at.Add(flush) {
		var id ulid.ULID
		require.NoError(b, id.SetTime(ulid.Timestamp(at.Add(flush))))
		w := key.WindowOf(at.UnixMilli())
		require.NoError(b, compacttest.Put(b.Context(), store, "t", w, id, f.rows(at.UnixMilli(), at.Add(flush).UnixMilli())))
	}
	s, err := New(Settings{Concurrency: 1, TempDir: b.TempDir()}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), func() time.Time { return now })
	require.NoError(b, err)
	return s, func(t time.Time) { now = t }
}

// dry executes a merge without its commit, and removes its output.
func dry(b *testing.B, s *Stage, job plan.Job) int64 {
	b.Helper()
	snap, err := catalog.Take(b.Context(), s.store, "t", key.MinTime, key.MaxTime)
	require.NoError(b, err)
	srcs, err := plan.Resolve(&snap, &job)
	require.NoError(b, err)
	in, err := s.open(b.Context(), "t", &job, srcs, nil)
	require.NoError(b, err)
	id, err := s.ids.next(s.now())
	require.NoError(b, err)
	files := blockio.NewWriter(b.Context(), s.store, key.Block{Tenant: "t", Level: job.Level, Window: job.Window, ID: id}, s.set.TempDir)
	w := &output{stage: s, ctx: b.Context(), in: in, tombs: snap.Tombstones, job: &job, files: files, entry: catalog.Block{Level: job.Level, Window: job.Window, ID: id}}
	stats, err := w.write()
	require.NoError(b, err)
	require.NoError(b, in.Close())
	require.NoError(b, files.Remove(b.Context()))
	return stats.Read
}

// cpu is the processor time that this process has used: other than the time on the wall, it does
// not depend on who else is at work.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkMerge merges the window or day of 1,000 series with a sample every ten seconds, reading
// and writing included.
func BenchmarkMerge(b *testing.B) {
	for _, c := range []struct {
		level   key.Level
		from    string
		span    time.Duration
		prepare []string // times to compact at before
		at      string
	}{
		{key.L2h, "segments", 2 * time.Hour, nil, "02:15"},
		{key.L2h, "parts", 2 * time.Hour, []string{"00:20", "00:40", "01:00", "01:20", "01:40", "02:00"}, "02:15"},
		{key.L12h, "2h", 12 * time.Hour, []string{"02:15", "04:15", "06:15", "08:15", "10:15", "11:30"}, "12:15"},
		{key.L24h, "12h", 24 * time.Hour, []string{"12:15", "14:15", "16:15", "18:15", "20:15", "22:15", "23:30"}, "24:15"},
	} {
		b.Run(fmt.Sprintf("level=%s/from=%s", c.level, c.from), func(b *testing.B) {
			s, at := benchLake(b, 1000, c.span, 2*time.Minute)
			for _, t := range c.prepare {
				at(clock(t))
				require.NoError(b, s.UntilIdle(b.Context(), nil, nil))
			}
			at(clock(c.at))
			snap, err := catalog.Take(b.Context(), s.store, "t", key.MinTime, key.MaxTime)
			require.NoError(b, err)
			jobs := plan.Jobs(s.set.Policy, s.now(), snap)
			require.Len(b, jobs, 1)
			require.Equal(b, c.level, jobs[0].Level)
			samples, before := int64(0), cpu(b)
			for b.Loop() {
				samples += dry(b, s, jobs[0])
			}
			b.ReportMetric(float64(samples)/(cpu(b)-before).Seconds()/1e6, "Msamples/cpu-s")
			b.ReportMetric(float64(len(jobs[0].Sources.Segments)+len(jobs[0].Sources.Blocks)), "sources")
		})
	}
}

// BenchmarkDay merges a day of 50 million samples (5,787 series) out of a 12h block and six 2h
// blocks into one 24h block, with rollups, and reports the peak memory of the process. Making the
// day takes some minutes.
func BenchmarkDay(b *testing.B) {
	s, at := benchLake(b, 5787, 24*time.Hour, 20*time.Minute)
	for h := 2; h < 24; h += 2 {
		at(clock(fmt.Sprintf("%d:15", h)))
		require.NoError(b, s.UntilIdle(b.Context(), nil, nil))
	}
	at(clock("24:05"))
	require.NoError(b, s.UntilIdle(b.Context(), nil, nil))
	at(clock("24:15"))
	snap, err := catalog.Take(b.Context(), s.store, "t", key.MinTime, key.MaxTime)
	require.NoError(b, err)
	jobs := plan.Jobs(s.set.Policy, s.now(), snap)
	require.Len(b, jobs, 1)
	require.Equal(b, key.L24h, jobs[0].Level)
	debug.FreeOSMemory()
	require.NoError(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // forget the peak so far
	samples, before := int64(0), cpu(b)
	for b.Loop() {
		samples += dry(b, s, jobs[0])
	}
	b.ReportMetric(float64(samples)/float64(b.N)/1e6, "Msamples")
	b.ReportMetric(float64(samples)/(cpu(b)-before).Seconds()/1e6, "Msamples/cpu-s")
	b.ReportMetric(peakMB(b), "peak-MB")
}

// peakMB is the largest resident set of the process.
func peakMB(b *testing.B) float64 {
	data, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			require.NoError(b, err)
			return kb / 1024
		}
	}
	b.Fatal("no VmHWM in /proc/self/status")
	return 0
}
