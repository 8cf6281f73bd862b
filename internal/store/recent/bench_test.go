package recent

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
)

// exporters are targets whose series are of the kinds that a node_exporter has, each kind as often.
// They are scraped every 15 s, some ms late now and then, and their samples are stored every 3 s.
type exporters struct {
	rng     *rand.Rand
	clock   time.Time
	heads   *heads
	head    *Head
	view    series.View
	values  []float64 // by ref
	names   []string  // of segments
	targets int
}

const (
	targetSeries  = 100
	scrapeSeconds = 15
	storeSeconds  = 3
)

func newExporters(tb testing.TB, targets int) *exporters {
	tb.Helper()
	e := &exporters{rng: rand.New(rand.NewPCG(1, 2)), clock: time.UnixMilli(1_790_000_000_000), targets: targets}
	table := series.NewTable(0)
	for target := range targets {
		for i := range targetSeries {
			_, err := table.Intern([]series.Label{
				{Name: "__name__", Value: fmt.Sprint("metric_", i/2)}, {Name: "device", Value: fmt.Sprint("d", i%2)}, {Name: "env", Value: fmt.Sprint("env", target%3)},
				{Name: "instance", Value: fmt.Sprint("host-", target, ":9100")}, {Name: "job", Value: "node"},
			})
			require.NoError(tb, err)
			e.values = append(e.values, float64(e.rng.IntN(1e6)))
		}
	}
	e.view = table.View()
	e.heads = newHeads(1<<30, nil, func() time.Time { return e.clock })
	e.head = e.heads.of("a", true)
	e.head.Begin()
	return e
}

// next changes the value of a series.
func (e *exporters) next(ref int) float64 {
	v := &e.values[ref]
	switch i := ref % targetSeries; {
	case i < 68: // a constant
	case i < 72:
		*v += float64(e.rng.IntN(100))
	case i < 82:
		*v += float64(e.rng.IntN(50_000))
	case i < 86: // bytes of memory
		*v = float64(4096 * e.rng.IntN(1<<20))
	case i < 90: // seconds of processors
		*v = (float64(int64(*v*100)) + float64(e.rng.IntN(300))) / 100
	case i < 99: // how long something took
		*v = float64(100_000+e.rng.IntN(50_000)) / 1e9
	default:
		*v = e.rng.NormFloat64()
	}
	return *v
}

// scrape scrapes the targets whose turn it is.
func (e *exporters) scrape() *Segment {
	s := &Segment{Labels: NewLabels(&e.view)}
	var stamps []int64
	begin := int(e.clock.Unix() % scrapeSeconds / storeSeconds)
	times := make([]int64, e.targets)
	for target := range times {
		times[target] = e.clock.UnixMilli() + int64(target%(1000*storeSeconds))
		if e.rng.IntN(3) == 0 {
			times[target] += 1 + e.rng.Int64N(20)
		}
	}
	for i := range targetSeries { // in the order of metrics
		for target := begin; target < e.targets; target += scrapeSeconds / storeSeconds {
			ref := target*targetSeries + i
			s.Rows, stamps, s.V = append(s.Rows, series.Ref(ref)), append(stamps, times[target]), append(s.V, e.next(ref))
		}
	}
	e.clock = e.clock.Add(storeSeconds * time.Second)
	s.times(stamps)
	return s
}

// store stores the samples of scrapes.
func (e *exporters) store(s *Segment) {
	e.names = append(e.names, fmt.Sprint("segment ", len(e.names)))
	e.head.noteRead()
	e.head.Stored(e.names[len(e.names)-1], s)
}

// fill stores samples for longer than a head keeps them.
func (e *exporters) fill() {
	for end := e.clock.Add(Retention + 2*time.Minute); e.clock.Before(end); {
		e.store(e.scrape())
	}
}

// bytesPerSeries is the memory of the head.
func (e *exporters) bytesPerSeries() float64 {
	return float64(e.heads.bytes) / float64(e.targets*targetSeries)
}

// TestBytes: what a series of a node_exporter takes, with all that is kept of it.
func TestBytes(t *testing.T) {
	e := newExporters(t, 100)
	e.fill()
	require.Less(t, e.bytesPerSeries(), 150.0)
}

// BenchmarkHead measures the processor time of a head for each sample that is stored, each selector
// of a rule that reads five minutes, and each series of a merge of four minutes, and the memory of
// its series.
//
//	go test ./internal/store/recent -run '^$' -bench Head
func BenchmarkHead(b *testing.B) {
	const targets = 500
	jobs := map[string]func(b *testing.B, e *exporters, room *Room, i int) (n int, spent time.Duration){
		"store": func(b *testing.B, e *exporters, _ *Room, _ int) (int, time.Duration) {
			s := e.scrape()
			begin := processorTime(b)
			e.store(s)
			return len(s.Rows), processorTime(b) - begin
		},
		"read": func(b *testing.B, e *exporters, room *Room, i int) (int, time.Duration) {
			ms := []*labels.Matcher{
				labels.MustNewMatcher(labels.MatchEqual, "__name__", fmt.Sprint("metric_", i%50)),
				labels.MustNewMatcher(labels.MatchEqual, "instance", fmt.Sprint("host-", i/50%targets, ":9100")),
			}
			mint := e.clock.UnixMilli() - 300_000
			begin := processorTime(b)
			r, ok := e.head.Read(mint, ulid.ULID{})
			require.True(b, ok)
			_, ok = r.Select(ms, mint, e.clock.UnixMilli(), 100, 10_000, room)
			r.Close()
			require.True(b, ok)
			room.Reset()
			return 1, processorTime(b) - begin
		},
		"merge": func(b *testing.B, e *exporters, _ *Room, _ int) (int, time.Duration) {
			var t []int64
			var v []float64
			begin := processorTime(b)
			p, ok := e.head.Part(e.names[len(e.names)-100 : len(e.names)-20])
			require.True(b, ok)
			for i := range p.Refs {
				var err error
				t, v, err = p.Append(i, t[:0], v[:0])
				require.NoError(b, err)
			}
			return len(p.Refs), processorTime(b) - begin
		},
	}
	for _, name := range []string{"store", "read", "merge"} {
		b.Run(fmt.Sprintf("series=%d/job=%s", targets*targetSeries, name), func(b *testing.B) {
			e := newExporters(b, targets)
			e.fill()
			room, n, spent := new(Room), 0, time.Duration(0)
			for i := 0; b.Loop(); i++ {
				more, took := jobs[name](b, e, room, i)
				n, spent = n+more, spent+took
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "cpu-ns/each")
			b.ReportMetric(e.bytesPerSeries(), "bytes/series")
		})
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
