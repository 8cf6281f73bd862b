package push_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/push"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const now = 1_700_000_000_000 // ms

const protobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

var limits = push.Settings{MaxBytes: 1 << 20, MaxSeries: 1000}

func room() remotewrite.Room { return remotewrite.NewRoom(100, 1<<30, 1<<30, nil) }

func parse(b push.Body, g push.Group) (*push.Metrics, error) {
	r := room()
	return push.Parse(b, g, limits, &r)
}

// written returns the samples of a change.
func written(t testing.TB, c push.Change) (out []string) {
	t.Helper()
	l := remotewrite.DefaultLimits()
	b, err := c.Batch(remotewrite.NewGeneration(1), remotewrite.Rules{Limits: &l, TimeRange: l.TimeRange(time.UnixMilli(now)), MaxWindows: 100}, room())
	require.NoError(t, err)
	require.NoError(t, b.Err)
	view := b.Generation.Table.View()
	for _, f := range b.Floats {
		text := fmt.Sprint(f.V)
		if value.IsStaleNaN(f.V) {
			text = "end"
		}
		out = append(out, fmt.Sprintf("%s %s @%d", remotewritetest.Labels(&view, f.Ref), text, f.T-now))
	}
	for _, h := range b.Hists {
		text := fmt.Sprint(h.H)
		if value.IsStaleNaN(h.H.Sum) {
			text = "end"
		}
		out = append(out, fmt.Sprintf("%s histogram %s @%d", remotewritetest.Labels(&view, h.Ref), text, h.T-now))
	}
	for _, m := range b.Metadata {
		out = append(out, fmt.Sprintf("# %s %s %s", m.Metric, m.Type, m.Help))
	}
	out = slices.DeleteFunc(out, func(line string) bool { return strings.Contains(line, "_time_seconds") })
	slices.Sort(out)
	return out
}

func TestParseGroup(t *testing.T) {
	for path, want := range map[string]push.Group{
		"job/a":                            {{Name: "job", Value: "a"}},
		"job/a/":                           {{Name: "job", Value: "a"}},
		"job/a%2Fb/x/%C3%BC":               {{Name: "job", Value: "a/b"}, {Name: "x", Value: "ü"}},
		"job@base64/Zm9v/x@base64/":        nil,
		"job@base64/Zm9v/x@base64/=":       {{Name: "job", Value: "foo"}, {Name: "x", Value: ""}},
		"job@base64/Zm9/x":                 nil,
		"job/a/path@base64/L3Zhci90bXA":    {{Name: "job", Value: "a"}, {Name: "path", Value: "/var/tmp"}},
		"job/a/path@base64/L3Zhci90bXA=":   {{Name: "job", Value: "a"}, {Name: "path", Value: "/var/tmp"}},
		"job/a/x/1/job/b/a.b/3/x/2":        {{Name: "a.b", Value: "3"}, {Name: "job", Value: "a"}, {Name: "x", Value: "2"}},
		"job/a/x@base64/_w":                nil, // not UTF-8
		"job/a/x@base64/*":                 nil,
		"job/":                             nil,
		"":                                 nil,
		"x/1/job/a":                        nil,
		"job/a/__x/1":                      nil,
		"job/a//1":                         nil,
		"job/%zz":                          nil,
		"job/" + strings.Repeat("a", 1000): {{Name: "job", Value: strings.Repeat("a", 1000)}},
	} {
		g, err := push.ParseGroup(path)
		if want == nil {
			require.ErrorIs(t, err, push.ErrInvalid, path)
			continue
		}
		require.NoError(t, err, path)
		require.Equal(t, want, g, path)
		require.Len(t, g.ID(), 32)
	}
	require.NotEqual(t, push.Group{{Name: "job", Value: "ab"}}.ID(), push.Group{{Name: "joba", Value: "b"}}.ID())
}

// TestForms: what client libraries write in both forms becomes the same samples.
func TestForms(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "C."}, []string{"x", "job"})
	c.WithLabelValues("1", "own").Add(5)
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "H.", Buckets: []float64{1, 2.5}})
	h.Observe(2)
	s := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Help: "S.", Objectives: map[float64]float64{0.5: 0.05}})
	s.Observe(3)
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"})
	g.Set(math.Inf(1))
	reg.MustRegister(c, h, s, g)
	all, err := reg.Gather()
	require.NoError(t, err)
	name := push.Group{{Name: "instance", Value: ""}, {Name: "job", Value: "j"}, {Name: "y", Value: "2"}}
	want := []string{
		"# c_total counter C.", "# g gauge ", "# h histogram H.", "# s summary S.",
		`{__name__="c_total", job="j", x="1", y="2"} 5 @0`,
		`{__name__="g", job="j", y="2"} +Inf @0`,
		`{__name__="h_bucket", job="j", le="+Inf", y="2"} 1 @0`,
		`{__name__="h_bucket", job="j", le="1.0", y="2"} 0 @0`,
		`{__name__="h_bucket", job="j", le="2.5", y="2"} 1 @0`,
		`{__name__="h_count", job="j", y="2"} 1 @0`,
		`{__name__="h_sum", job="j", y="2"} 2 @0`,
		`{__name__="s", job="j", quantile="0.5", y="2"} 3 @0`,
		`{__name__="s_count", job="j", y="2"} 1 @0`,
		`{__name__="s_sum", job="j", y="2"} 3 @0`,
	}
	for form, contentType := range map[expfmt.FormatType]string{expfmt.TypeProtoDelim: protobuf, expfmt.TypeTextPlain: "text/plain; version=0.0.4"} {
		var text strings.Builder
		e := expfmt.NewEncoder(&text, expfmt.NewFormat(form))
		for _, f := range all {
			require.NoError(t, e.Encode(f))
		}
		m, err := parse(push.Body{Text: []byte(text.String()), ContentType: contentType}, name)
		require.NoError(t, err)
		change, err := push.State{}.Push(name, m, true, now, limits)
		require.NoError(t, err)
		require.Equal(t, want, written(t, change), contentType)
	}
}

// TestNativeHistograms: they have samples and stale markers of their own kind.
func TestNativeHistograms(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", NativeHistogramBucketFactor: 2})
	h.Observe(2)
	reg.MustRegister(h)
	all, err := reg.Gather()
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeProtoDelim)).Encode(all[0]))
	name := push.Group{{Name: "job", Value: "j"}}
	m, err := parse(push.Body{Text: []byte(text.String()), ContentType: protobuf}, name)
	require.NoError(t, err)
	change, err := push.State{}.Push(name, m, true, now, limits)
	require.NoError(t, err)
	require.Equal(t, []string{"# h histogram ", `{__name__="h", job="j"} histogram {count:1, sum:2, (1,2]:1} @0`}, written(t, change))
	state := change.Next
	other, err := parse(push.Body{Text: []byte("x 1\n")}, name)
	require.NoError(t, err)
	change, err = state.Push(name, other, true, now+1, limits)
	require.NoError(t, err)
	require.Equal(t, []string{`{__name__="h", job="j"} histogram end @1`, `{__name__="x", job="j"} 1 @1`}, written(t, change))
	text.Reset()
	classic, err := parse(push.Body{Text: []byte("h 1\n")}, name)
	require.NoError(t, err)
	change, err = state.Push(name, classic, true, now+1, limits)
	require.NoError(t, err)
	require.Equal(t, []string{`{__name__="h", job="j"} 1 @1`}, written(t, change), "the series goes on as another kind")
}

// TestTimesAscend: changes have ascending times unless a clock was far ahead.
func TestTimesAscend(t *testing.T) {
	name := push.Group{{Name: "job", Value: "j"}}
	for last, want := range map[int64]int64{now - 1: now, now: now + 1, now + 5000: now + 5001, now + 3_600_000: now} {
		require.Equal(t, want, push.State{At: last}.Fail(name, now).Next.At)
	}
}

// TestStateFormat pins the bytes of a state.
func TestStateFormat(t *testing.T) {
	name := push.Group{{Name: "instance", Value: ""}, {Name: "job", Value: "j"}}
	m, err := parse(push.Body{Text: []byte("a{x=\"1\"} 1\n")}, name)
	require.NoError(t, err)
	change, err := push.State{}.Push(name, m, true, now, limits)
	require.NoError(t, err)
	change.Next.ID = "5e7a01c2b9d4"
	b, err := change.Next.Encode()
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"id":"5e7a01c2b9d4","labels":{"instance":"","job":"j"},"at":1700000000000,"pushed":1700000000000,"failed":0,`+
		`"families":{"a":{"floats":[{"__name__":"a","job":"j","x":"1"}]}},"crc32c":"`, string(b[:len(b)-10]))
	back, err := push.Decode(b)
	require.NoError(t, err)
	require.Equal(t, change.Next, back)
	_, err = push.Decode(b[1:])
	require.Error(t, err)
	_, err = push.Decode([]byte(strings.Replace(string(b), "170", "171", 1)))
	require.Error(t, err)
	b, err = push.State{Version: 2}.Encode()
	require.NoError(t, err)
	_, err = push.Decode(b)
	require.ErrorIs(t, err, push.ErrVersion)
}

// TestRoom: a push takes the memory of parsing from its request.
func TestRoom(t *testing.T) {
	r := remotewrite.NewRoom(100, 1000, 1000, nil)
	_, err := push.Parse(push.Body{Text: []byte(strings.Repeat("a 1\n", 10))}, nil, limits, &r)
	var dense *remotewrite.DenseError
	require.ErrorAs(t, err, &dense)
}

// FuzzPush: whatever parses can be written, read back as a state, and ended.
func FuzzPush(f *testing.F) {
	f.Add([]byte("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\na{x=\"1\"} 2\n"), "job/j/x/1", false)
	f.Add([]byte("\x0f\n\x01a\x18\x01\"\x08\x12\x06\n\x00"), "job@base64/Zm9v", true)
	f.Fuzz(func(t *testing.T, body []byte, path string, binary bool) {
		g, err := push.ParseGroup(path)
		if err != nil {
			require.ErrorIs(t, err, push.ErrInvalid)
			return
		}
		b := push.Body{Text: body}
		if binary {
			b.ContentType = protobuf
		}
		m, err := parse(b, g)
		if err != nil {
			return
		}
		change, err := push.State{}.Push(g, m, true, now, limits)
		require.NoError(t, err)
		l := remotewrite.DefaultLimits()
		rules := remotewrite.Rules{Limits: &l, TimeRange: l.TimeRange(time.UnixMilli(now)), MaxWindows: 100}
		batch, err := change.Batch(remotewrite.NewGeneration(1), rules, room())
		require.NoError(t, err)
		raw, err := change.Next.Encode()
		require.NoError(t, err)
		state, err := push.Decode(raw)
		require.NoError(t, err)
		ended := state.Delete(g, now+1)
		markers, err := ended.Batch(remotewrite.NewGeneration(1), rules, room())
		require.NoError(t, err)
		if batch.Err == nil {
			require.Equal(t, remotewrite.TallyOf(batch).Samples(), remotewrite.TallyOf(markers).Samples())
		}
	})
}
