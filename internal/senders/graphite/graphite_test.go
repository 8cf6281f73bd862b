package graphite_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/graphite"
)

const now = 1_700_000_000_000

func decode(tb testing.TB, g *remotewrite.Generation, body string) *remotewrite.Batch {
	tb.Helper()
	limits := remotewrite.DefaultLimits()
	b, err := graphite.Decode(graphite.Request{Body: []byte(body), Time: now}, g,
		remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now))}, remotewrite.NewRoom(len(body), 1<<30, 1<<30, nil))
	require.NoError(tb, err)
	return b
}

// samples renders the samples of a batch.
func samples(b *remotewrite.Batch) (out []string) {
	view := b.Generation.Table.View()
	for _, f := range b.Floats {
		lset := labels.NewBuilder(labels.FromStrings("__name__", view.Metrics[view.Metric(f.Ref)]))
		for _, p := range view.Pairs(f.Ref) {
			lset.Set(view.Names[p.Name], view.Values[p.Name][p.Value])
		}
		out = append(out, fmt.Sprintf("%s %v %d", lset.Labels(), f.V, f.T))
	}
	return out
}

func TestDecode(t *testing.T) {
	g := remotewrite.NewGeneration(1)
	for range 2 { // unknown series, then known ones
		b := decode(t, g, "servers.web01.load 0.7 1699999999\r\n\n"+
			"disk;path=/;host=a  -1e3\t1699999998.5\n"+
			"disk;host=a;path=/ 1 1699999998\n"+
			"a;x=1;x=2;__y=ü 2 -1\n"+
			"a.b nan\n"+
			"c;t=a=b inf 0")
		require.NoError(t, b.Err)
		require.Equal(t, []string{
			`{__name__="servers.web01.load"} 0.7 1699999999000`,
			`{__name__="disk", host="a", path="/"} -1000 1699999998500`,
			`{__name__="disk", host="a", path="/"} 1 1699999998000`,
			`{__name__="a", __y="ü", x="2"} 2 1700000000000`,
			`{__name__="a.b"} NaN 1700000000000`,
			`{__name__="c", t="a=b"} +Inf 0`,
		}, samples(b))
		b.Release()
	}
}

func TestDecodeRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"a":                  `line "a": want a metric, a value and a time in seconds, with spaces between them (invalid_line)`,
		"a 1 2 3":            "want a metric, a value and a time",
		"a one 2":            `the value "one" is not a number`,
		"a 1 yesterday":      `the time "yesterday" is not a number of seconds`,
		"a 1 1e300":          `the time "1e300" is not`,
		"a 1 nan":            `the time "nan" is not`,
		";x=1 1 2":           "the metric has no name",
		"a;x 1 2":            `the tag "x" is not a name and a value with = between them`,
		"a;=1 1 2":           `the tag "=1"`,
		"a;x= 1 2":           `the tag "x="`,
		"a; 1 2":             `the tag ""`,
		"a;__name__=b 1 2":   `the tag "__name__=b"`,
		"a\xff 1 2":          "not valid UTF-8",
		"a 1 1800000000":     "too far in the future",
		"a 1 99999999999999": "outside the years",
		"a;" + strings.Repeat("x", 3000) + "=1 1 2": "longer than the limit of 1024 bytes",
	} {
		b := decode(t, remotewrite.NewGeneration(1), "before 1 2\n"+line+"\nafter 1 2\n")
		require.Error(t, b.Err, "%.50s", line)
		require.ErrorContains(t, b.Err, want)
		require.Len(t, b.Floats, 2, "%.50s", line)
		require.Equal(t, 1, b.Rejected)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("servers.web01.load;dc=lga 0.7 1699999999\na 1\n"))
	f.Add([]byte("a;;=;= 1 -1\n\x00\xff 2 2"))
	f.Fuzz(func(t *testing.T, body []byte) {
		b := decode(t, remotewrite.NewGeneration(1), string(body))
		require.LessOrEqual(t, len(b.Floats)+b.Rejected, 1+2*bytes.Count(body, []byte{'\n'})+1)
		again := decode(t, b.Generation, string(body))
		require.Equal(t, samples(b), samples(again), "what is known is read alike")
	})
}
