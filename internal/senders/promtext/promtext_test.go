package promtext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/promtext"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const now = 1_700_000_000_000 // ms

func decode(t testing.TB, r promtext.Request, g *remotewrite.Generation, extra ...series.Label) (samples []string, meta []segment.Metadata, offence, err error) {
	t.Helper()
	if r.Time == 0 {
		r.Time = now
	}
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100, Labels: series.LastOfEach(extra)}
	room := remotewrite.MostRoom(int64(len(r.Body)))
	b, err := promtext.Decode(r, g, rules, remotewrite.NewRoom(len(r.Body), room, room, nil))
	if err != nil {
		return nil, nil, nil, err
	}
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	for _, f := range b.Floats {
		samples = append(samples, fmt.Sprintf("%s %v @%d", remotewritetest.Labels(&v, f.Ref), f.V, f.T-now))
	}
	for _, e := range b.Exemplars {
		samples = append(samples, fmt.Sprintf("%s exemplar %s %v @%d", remotewritetest.Labels(&v, e.Ref), e.Labels, e.Value, e.Ts-now))
	}
	slices.Sort(samples)
	return samples, append([]segment.Metadata(nil), b.Metadata...), b.Err, nil
}

const openMetrics = `# TYPE requests counter
# UNIT requests_seconds seconds
# HELP requests Requests.
requests_total{code="200"} 5 1700000000.5 # {trace_id="abc"} 0.25 1700000000.25
requests_total{code="500"} 1 # {trace_id="def"} 0.5
# EOF
`

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		request promtext.Request
		extra   []series.Label
		want    []string
		meta    []segment.Metadata
		offence string
	}{
		"text": {
			request: promtext.Request{Body: []byte("# HELP up Whether it is up.\n# TYPE up gauge\nup{job=\"a\"} 1\nup{job=\"b\",x=\"\"} 0 1699999999000\n\n# TYPE n counter\nn NaN")},
			want:    []string{`{__name__="n"} NaN @0`, `{__name__="up", job="a"} 1 @0`, `{__name__="up", job="b"} 0 @-1000`},
			meta:    []segment.Metadata{{Metric: "up", Type: "gauge", Help: "Whether it is up."}, {Metric: "n", Type: "counter"}},
		},
		"OpenMetrics": {
			request: promtext.Request{Body: []byte(strings.ReplaceAll(openMetrics, "# UNIT requests_seconds seconds\n", "")), OpenMetrics: true},
			want: []string{
				`{__name__="requests_total", code="200"} 5 @500`, `{__name__="requests_total", code="200"} exemplar {trace_id="abc"} 0.25 @250`,
				`{__name__="requests_total", code="500"} 1 @0`, `{__name__="requests_total", code="500"} exemplar {trace_id="def"} 0.5 @0`,
			},
			meta: []segment.Metadata{{Metric: "requests", Type: "counter", Help: "Requests."}},
		},
		"labels replace": {
			request: promtext.Request{Body: []byte("up{job=\"a\",z=\"1\"} 1\n")},
			extra:   []series.Label{{Name: "job", Value: "b"}, {Name: "az", Value: "c"}},
			want:    []string{`{__name__="up", az="c", job="b", z="1"} 1 @0`},
		},
		"a time for all": {request: promtext.Request{Body: []byte("up 1\n"), Time: now - 5}, want: []string{`{__name__="up"} 1 @-5`}},
		"buckets of histograms have one form": {
			request: promtext.Request{Body: []byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n# TYPE g gauge\ng{le=\"1\"} 1\n")},
			want:    []string{`{__name__="g", le="1"} 1 @0`, `{__name__="h_bucket", le="+Inf"} 2 @0`, `{__name__="h_bucket", le="1.0"} 1 @0`},
			meta:    []segment.Metadata{{Metric: "h", Type: "histogram"}, {Metric: "g", Type: "gauge"}},
		},
		"the future": {
			request: promtext.Request{Body: []byte("up 1 1800000000000\nup 2\n")}, want: []string{`{__name__="up"} 2 @0`},
			offence: "timestamp 1800000000000 ms is too far in the future: the limit is now 1700000600000 ms (too_far_in_future); it is set by creation_grace_period of the tenant, or --validation.create-grace-period",
		},
		"nothing": {request: promtext.Request{Body: []byte("\n# a comment\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := remotewrite.NewGeneration(7)
			for range 2 { // the second time all series are known
				got, meta, offence, err := decode(t, tc.request, g, tc.extra...)
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				require.Equal(t, tc.meta, meta)
				if tc.offence == "" {
					require.NoError(t, offence)
				} else {
					require.EqualError(t, offence, tc.offence)
				}
			}
		})
	}
}

// TestLabelsByType: equal text is another series if the type of its family makes the parser write
// its labels in another way.
func TestLabelsByType(t *testing.T) {
	g := remotewrite.NewGeneration(7)
	for _, tc := range []struct{ body, want string }{
		{"h_bucket{le=\"1\"} 1\n", `{__name__="h_bucket", le="1"} 1 @0`},
		{"# TYPE h histogram\nh_bucket{le=\"1\"} 1\n", `{__name__="h_bucket", le="1.0"} 1 @0`},
		{"h_bucket{le=\"1\"} 1\n", `{__name__="h_bucket", le="1"} 1 @0`},
	} {
		got, _, _, err := decode(t, promtext.Request{Body: []byte(tc.body)}, g)
		require.NoError(t, err)
		require.Equal(t, []string{tc.want}, got)
	}
}

func TestInvalid(t *testing.T) {
	for body, om := range map[string]bool{"up{ 1\n": false, "up one\n": false, "up 1\n": true, "up 1 2 3\n": false, "# TYPE up\x00 gauge\nup{a=\"\xff\"} 1\n": false} {
		_, _, _, err := decode(t, promtext.Request{Body: []byte(body), OpenMetrics: om}, remotewrite.NewGeneration(7))
		require.ErrorIs(t, err, promtext.ErrInvalid, "%q", body)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(openMetrics), true)
	f.Add([]byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nup 1 5\n"), false)
	f.Fuzz(func(t *testing.T, body []byte, om bool) {
		g := remotewrite.NewGeneration(7)
		unknown, _, _, err := decode(t, promtext.Request{Body: slices.Clone(body), OpenMetrics: om}, g)
		if err != nil {
			return
		}
		known, _, _, err := decode(t, promtext.Request{Body: slices.Clone(body), OpenMetrics: om}, g)
		require.NoError(t, err)
		require.Equal(t, unknown, known)
	})
}
