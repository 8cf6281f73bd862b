package opentsdb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/opentsdb"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

func tryLines(t *testing.T, body string, g *remotewrite.Generation) (samples []string, rejected int, offence error) {
	t.Helper()
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100}
	const room = 1 << 30
	b, err := opentsdb.DecodeLines([]byte(body), g, rules, remotewrite.NewRoom(len(body), room, room, nil))
	require.NoError(t, err)
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	for _, f := range b.Floats {
		samples = append(samples, fmt.Sprintf("%s %v @%d", remotewritetest.Labels(&v, f.Ref), f.V, f.T-now))
	}
	return samples, b.Rejected, b.Err
}

func TestLines(t *testing.T) {
	g := remotewrite.NewGeneration(7)
	for range 2 { // the second time all series are known
		got, _, offence := tryLines(t, "put sys.cpu 1700000000 18 host=web01 dc=lga\r\n\n"+
			"  put  sys.cpu 1699999999999 -1e3 dc=lga\thost=web01\n"+
			"put a 1699999999.5 nan\n"+
			"put ü 1700000000 0x10p0 t=a=b", g)
		require.NoError(t, offence)
		require.Equal(t, []string{
			`{__name__="sys.cpu", dc="lga", host="web01"} 18 @0`,
			`{__name__="sys.cpu", dc="lga", host="web01"} -1000 @-1`,
			`{__name__="a"} NaN @-500`,
			`{__name__="ü", t="a=b"} 16 @0`,
		}, got)
	}
}

func TestRefusedLines(t *testing.T) {
	const good = "put good 1700000000 1\n"
	for bad, want := range map[string]string{
		"version":                       `line "version": want put, a metric, a timestamp, a value and tags`,
		"m 1700000000 1 a=b":            "want put",
		"put m 1700000000":              "want put",
		"put m now 1":                   `"now" is not a timestamp in seconds or milliseconds`,
		"put m 5e9 1":                   `"5e9" is not a timestamp`,
		"put m 1700000000 one":          `the value "one" is not a number`,
		"put m 1700000000 1 a":          `the tag "a" is not a name and a value`,
		"put m 1700000000 1 =b":         `the tag "=b" is not`,
		"put m 1700000000 1 a=":         `the tag "a=" is not`,
		"put m 1700000000 1 __name__=x": `the tag "__name__=x" is not`,
		"put m 1700000000 1 a=x a=y":    `duplicate label name "a"`,
		"put m 1900000000 1":            "too_far_in_future",
		"put \xff 1700000000 1":         "not valid UTF-8",
		"put m 1700000000 1 a=" + strings.Repeat("x", 3000): "label_value_too_long",
	} {
		got, rejected, offence := tryLines(t, good+bad+"\n"+good, remotewrite.NewGeneration(7))
		require.ErrorContains(t, offence, want, bad)
		require.Equal(t, 1, rejected, bad)
		require.Len(t, got, 2, bad)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("put a 1700000000 1.5 b=c d=5\nput\nput a 1700000000500 1 d=5 b=c")
	f.Fuzz(func(t *testing.T, body string) {
		g := remotewrite.NewGeneration(7)
		unknown, refused, _ := tryLines(t, body, g)
		known, again, _ := tryLines(t, body, g)
		require.Equal(t, refused, again)
		require.True(t, slices.Equal(unknown, known))
	})
}
