package imports_test

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
	"github.com/promlake/promlake/internal/senders/imports"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

func decodeText(t testing.TB, r imports.Text, g *remotewrite.Generation, extra ...series.Label) (samples []string, meta []segment.Metadata, offence, err error) {
	t.Helper()
	if r.Time == 0 {
		r.Time = now
	}
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100, Labels: series.LastOfEach(extra)}
	room := remotewrite.MostRoom(int64(len(r.Body)))
	b, err := imports.DecodeText(r, g, rules, remotewrite.NewRoom(len(r.Body), room, room, nil))
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

func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		request imports.Text
		extra   []series.Label
		want    []string
		meta    []segment.Metadata
		offence string
	}{
		"text": {
			request: imports.Text{Body: []byte("# HELP up Whether it is up.\n# TYPE up gauge\nup{job=\"a\"} 1\nup{job=\"b\",x=\"\"} 0 1699999999000\n\n# TYPE n counter\nn NaN")},
			want:    []string{`{__name__="n"} NaN @0`, `{__name__="up", job="a"} 1 @0`, `{__name__="up", job="b"} 0 @-1000`},
			meta:    []segment.Metadata{{Metric: "up", Type: "gauge", Help: "Whether it is up."}, {Metric: "n", Type: "counter"}},
		},
		"OpenMetrics": {
			request: imports.Text{Body: []byte(strings.ReplaceAll(openMetrics, "# UNIT requests_seconds seconds\n", "")), OpenMetrics: true},
			want: []string{
				`{__name__="requests_total", code="200"} 5 @500`, `{__name__="requests_total", code="200"} exemplar {trace_id="abc"} 0.25 @250`,
				`{__name__="requests_total", code="500"} 1 @0`, `{__name__="requests_total", code="500"} exemplar {trace_id="def"} 0.5 @0`,
			},
			meta: []segment.Metadata{{Metric: "requests", Type: "counter", Help: "Requests."}},
		},
		"labels replace": {
			request: imports.Text{Body: []byte("up{job=\"a\",z=\"1\"} 1\n")},
			extra:   []series.Label{{Name: "job", Value: "b"}, {Name: "az", Value: "c"}},
			want:    []string{`{__name__="up", az="c", job="b", z="1"} 1 @0`},
		},
		"a time for all": {request: imports.Text{Body: []byte("up 1\n"), Time: now - 5}, want: []string{`{__name__="up"} 1 @-5`}},
		"buckets of histograms have one form": {
			request: imports.Text{Body: []byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n# TYPE g gauge\ng{le=\"1\"} 1\n")},
			want:    []string{`{__name__="g", le="1"} 1 @0`, `{__name__="h_bucket", le="+Inf"} 2 @0`, `{__name__="h_bucket", le="1.0"} 1 @0`},
			meta:    []segment.Metadata{{Metric: "h", Type: "histogram"}, {Metric: "g", Type: "gauge"}},
		},
		"the future": {
			request: imports.Text{Body: []byte("up 1 1800000000000\nup 2\n")}, want: []string{`{__name__="up"} 2 @0`},
			offence: "timestamp 1800000000000 ms is too far in the future: the limit is now 1700000600000 ms (too_far_in_future); it is set by creation_grace_period of the tenant, or --validation.create-grace-period",
		},
		"nothing": {request: imports.Text{Body: []byte("\n# a comment\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := remotewrite.NewGeneration(7)
			for range 2 { // the second time all series are known
				got, meta, offence, err := decodeText(t, tc.request, g, tc.extra...)
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
		got, _, _, err := decodeText(t, imports.Text{Body: []byte(tc.body)}, g)
		require.NoError(t, err)
		require.Equal(t, []string{tc.want}, got)
	}
}

func TestInvalidText(t *testing.T) {
	for body, om := range map[string]bool{"up{ 1\n": false, "up one\n": false, "up 1\n": true, "up 1 2 3\n": false, "# TYPE up\x00 gauge\nup{a=\"\xff\"} 1\n": false} {
		_, _, _, err := decodeText(t, imports.Text{Body: []byte(body), OpenMetrics: om}, remotewrite.NewGeneration(7))
		require.ErrorIs(t, err, imports.ErrText, "%q", body)
	}
}

// knownLikeUnknown decodes a body with new series, then with known ones. It reports whether it is
// valid.
func knownLikeUnknown(t *testing.T, body []byte, openMetrics bool) bool {
	t.Helper()
	g := remotewrite.NewGeneration(7)
	unknown, _, _, err := decodeText(t, imports.Text{Body: slices.Clone(body), OpenMetrics: openMetrics}, g)
	known, _, _, again := decodeText(t, imports.Text{Body: slices.Clone(body), OpenMetrics: openMetrics}, g)
	require.Equal(t, err, again, "%q", body)
	require.Equal(t, unknown, known, "%q", body)
	return err == nil
}

func FuzzText(f *testing.F) {
	f.Add([]byte(openMetrics), true)
	f.Add([]byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nup 1 5\n"), false)
	f.Fuzz(func(t *testing.T, body []byte, om bool) { knownLikeUnknown(t, body, om) })
}
