package imports_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/imports"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

func rulesNow() remotewrite.Rules {
	limits := remotewrite.DefaultLimits()
	return remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100}
}

func decodeJSON(t testing.TB, body []byte, g *remotewrite.Generation, extra ...series.Label) (samples []string, rejected int, offence error) {
	t.Helper()
	const room = 1 << 30
	rules := rulesNow()
	rules.Labels = series.LastOfEach(extra)
	b, err := imports.DecodeJSON(body, g, rules, remotewrite.NewRoom(len(body), room, room, nil))
	require.NoError(t, err)
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	for _, f := range b.Floats {
		text := fmt.Sprint(f.V)
		if value.IsStaleNaN(f.V) {
			text = "stale"
		}
		samples = append(samples, fmt.Sprintf("%s %s @%d", remotewritetest.Labels(&v, f.Ref), text, f.T-now))
	}
	slices.Sort(samples)
	return samples, b.Rejected, b.Err
}

func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		body    string
		labels  []series.Label
		want    []string
		offence string
	}{
		"several lines": {
			body: `{"metric":{"__name__":"up","job":"a"},"values":[1,0.5],"timestamps":[1700000000000,1699999999000]}` + "\r\n\n" +
				` { "timestamps" : [ 1700000000000 ] , "x":{"y":["}"]}, "values":[-1e3], "metric":{"job":"ü\"\u00e4","__name__":"n"} } `,
			want: []string{`{__name__="n", job="ü\"ä"} -1000 @0`, `{__name__="up", job="a"} 0.5 @-1000`, `{__name__="up", job="a"} 1 @0`},
		},
		"values that are no numbers": {
			body: `{"metric":{"__name__":"x"},"values":[null,"NaN","Infinity","-Infinity",-0,123456789012345678],"timestamps":[1699999999995,1699999999996,1699999999997,1699999999998,1699999999999,1700000000000]}`,
			want: []string{`{__name__="x"} +Inf @-3`, `{__name__="x"} -0 @-1`, `{__name__="x"} -Inf @-2`, `{__name__="x"} 1.2345678901234568e+17 @0`, `{__name__="x"} NaN @-4`, `{__name__="x"} stale @-5`},
		},
		"labels": {
			body:   `{"metric":{"__name__":"x","job":"a","empty":""},"values":[1],"timestamps":[1700000000000]}`,
			labels: []series.Label{{Name: "job", Value: "b"}, {Name: "az", Value: "c"}},
			want:   []string{`{__name__="x", az="c", job="b"} 1 @0`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := remotewrite.NewGeneration(7)
			for range 2 { // the second time all series are known
				got, rejected, offence := decodeJSON(t, []byte(tc.body), g, tc.labels...)
				require.NoError(t, offence)
				require.Zero(t, rejected)
				require.Equal(t, tc.want, got)
			}
		})
	}
}

// TestBadLinesOfJSON: a line that cannot be read is named, and the others are stored.
func TestBadLinesOfJSON(t *testing.T) {
	const good = `{"metric":{"__name__":"good"},"values":[1],"timestamps":[1700000000000]}`
	for bad, want := range map[string]string{
		`x`: `line 2: 'x' at byte 1, where { is expected (invalid_line)`,
		`{`: `line 2: the text ends where a string is expected`,
		`{"metric":{"__name__":"x"},"values":[1]}`:                                     `1 values, but 0 timestamps`,
		`{"metric":{"__name__":"x"},"values":[1,2],"timestamps":[1]}`:                  `2 values, but 1 timestamps`,
		`{"metric":{"__name__":"x"},"values":[],"timestamps":[]}`:                      `"values" is missing or empty`,
		`{"values":[1],"timestamps":[1]}`:                                              `"metric" is missing`,
		`{"metric":[],"values":[1],"timestamps":[1]}`:                                  `"metric" is not an object`,
		`{"metric":{"__name__":5},"values":[1],"timestamps":[1]}`:                      `the value of "__name__" is not a string`,
		`{"metric":{"__name__":"x"]},"values":[1],"timestamps":[1]}`:                   `line 2: `,
		`{"metric":{"job":"x"},"values":[1],"timestamps":[1]}`:                         `has no metric name`,
		`{"metric":{"__name__":"x","__name__":"y"},"values":[1],"timestamps":[1]}`:     `duplicate label name "__name__"`,
		"{\"metric\":{\"__name__\":\"\xff\"},\"values\":[1],\"timestamps\":[1]}":       `not valid UTF-8`,
		`{"metric":{"__name__":"x"},"values":["one"],"timestamps":[1]}`:                `"values": '"' at byte 38, where a number, "NaN", "Infinity", "-Infinity" or null is expected`,
		`{"metric":{"__name__":"x"},"values":[nul],"timestamps":[1]}`:                  `"values": 'n' at byte 38`,
		`{"metric":{"__name__":"x"},"values":[1],"timestamps":[1.5]}`:                  `"timestamps": '1' at byte 55, where an integer of milliseconds is expected`,
		`{"metric":{"__name__":"x"},"values":[1],"timestamps":[99999999999999999999]}`: `an integer of milliseconds`,
		`{"metric":{"__name__":"x"},"values":[1],"timestamps":[1]} {}`:                 `where the end is expected`,
		`{"metric":{"__name__":"x"},"values":[1],"timestamps":[1]`:                     `the text ends where , or } is expected`,
		`{"metric":{"__name__":"x"},"values":[1 2],"timestamps":[1]}`:                  `where , or ] is expected`,
		`{"metric":{"__name__":"x"},"values":[1],"timestamps":[1900000000000]}`:        `too_far_in_future`,
	} {
		got, rejected, offence := decodeJSON(t, []byte(good+"\n"+bad+"\n"+good), remotewrite.NewGeneration(7))
		require.ErrorContains(t, offence, want, bad)
		require.Equal(t, 1, rejected, bad)
		require.Equal(t, []string{`{__name__="good"} 1 @0`, `{__name__="good"} 1 @0`}, got, bad)
	}
}

func TestRoomOfJSON(t *testing.T) {
	body := []byte(`{"metric":{"__name__":"x"},"values":[` + strings.Repeat("1,", 1<<20) + `1],"timestamps":[1]}`)
	var dense *remotewrite.DenseError
	_, err := imports.DecodeJSON(body, remotewrite.NewGeneration(7), rulesNow(), remotewrite.NewRoom(len(body), 1<<20, 1<<20, nil))
	require.ErrorAs(t, err, &dense)
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"metric":{"__name__":"x","job":"a"},"values":[null,"NaN",1.5e-3],"timestamps":[1,2,3]}` + "\nx"))
	f.Fuzz(func(t *testing.T, body []byte) {
		g := remotewrite.NewGeneration(7)
		unknown, _, _ := decodeJSON(t, slices.Clone(body), g)
		known, _, _ := decodeJSON(t, slices.Clone(body), g)
		require.Equal(t, unknown, known)
	})
}

func BenchmarkJSON(b *testing.B) {
	for _, points := range []int{1, 100} {
		b.Run(fmt.Sprintf("points=%d", points), func(b *testing.B) {
			var body bytes.Buffer
			for i := range 1000 / points {
				fmt.Fprintf(&body, `{"metric":{"__name__":"cpu","host":"server-%d","region":"eu-central-1"},"values":[`, i)
				for j := range points {
					fmt.Fprintf(&body, "%d.25,", j)
				}
				body.Truncate(body.Len() - 1)
				body.WriteString(`],"timestamps":[`)
				for j := range points {
					fmt.Fprintf(&body, "%d,", now-j)
				}
				body.Truncate(body.Len() - 1)
				body.WriteString("]}\n")
			}
			g, rules := remotewrite.NewGeneration(7), rulesNow()
			for b.Loop() {
				batch, err := imports.DecodeJSON(body.Bytes(), g, rules, remotewrite.NewRoom(body.Len(), 1<<30, 1<<30, nil))
				if err != nil {
					b.Fatal(err)
				}
				batch.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
		})
	}
}
