package imports

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// result is a batch in words.
type result struct {
	Samples  []string
	Metadata string
	Offence  string
	Failed   bool
}

// resultOf decodes a body, with the parser alone or with what is read without it.
func resultOf(body []byte, g *remotewrite.Generation, alone bool) result {
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(1_700_000_000_000)), Labels: []series.Label{{Name: "job", Value: "x"}}}
	const room = 1 << 30
	d := textDecoder{Text: Text{Body: slices.Clone(body), Time: 5}}
	read := d.read
	if alone {
		read = func(c *remotewrite.Collector) error {
			d.c = c
			return d.parseRest(d.Body)
		}
	}
	b, err := remotewrite.Collect(g, rules, remotewrite.NewRoom(len(body), room, room, nil), read)
	if err != nil {
		return result{Failed: true}
	}
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	out := result{Metadata: fmt.Sprint(b.Metadata), Offence: fmt.Sprint(b.Err)}
	for _, f := range b.Floats {
		out.Samples = append(out.Samples, fmt.Sprintf("%s %x @%d", remotewritetest.Labels(&v, f.Ref), math.Float64bits(f.V), f.T))
	}
	slices.Sort(out.Samples)
	return out
}

// alike compares what is read without the parser with the parser alone: with new series, and with
// known ones.
func alike(t *testing.T, bodies ...[]byte) {
	t.Helper()
	quick, slow := remotewrite.NewGeneration(1), remotewrite.NewGeneration(1)
	for range 2 {
		for _, body := range bodies {
			require.Equal(t, resultOf(body, slow, true), resultOf(body, quick, false), "%q", body)
		}
	}
}

func TestLinesLikeTheParser(t *testing.T) {
	for _, body := range []string{
		"a 1\n", "a 1", "a{} 1\n", "a{x=\"1\"} 2 5\n", "a{x=\"1\"}2\n", "a+1\n", "a\t 1 \t5\t\n", "a 1 5 \n\n\n# x\n#\nb 2\n",
		"a NaN\n", "a +Inf\n", "a -Inf\n", "a inf\n", "a 0x1p-2\n", "a 1_0\n", "a 1e400\n", "a 1 -5\n", "a 1 99999999999999999999\n", "a 1 5 5\n", "a\n", "a {x=\"1\"} 1\n",
		"a{x=\"}\"} 1\n", "a{x=\"\\\"}\"} 1\n", "a{x=\"\\\\\"} 1\n", "a{x=\"1\n\"} 1\nb 2\n", "a{x=\"1\" 1\n", "a{x=\"1\\", "a{x=\"\xff\"} 1\n", "a{\"b c\"=\"1\"} 1\n", "{\"a b\"} 1\n",
		"a 1\r\n", " a 1\n", "a 1\x00\n", "# TYPE a counter\na 1\n", "# TYPE a counter", "#TYPE a counter\na 1\n", "#  TYPE a counter\na 1\n", "# TYPE  a counter\na 1\n",
		"# TYPE a nothing\n", "# TYPE a untyped\na 1\n", "# HELP a text\\n\\\\ more\na 1\n", "# HELP a  two\na 1\n", "# HELP a\na 1\n", "# HELP a  \n", "# HELP a \t", "# HELP a \xff\n", "# HELPER a\na 1\n", "# TYPEa\na 1\n",
		"# TYPE h histogram\nh_bucket{le=\"1\"} 1\n# HELP g x\ng{le=\"1\"} 1\n# TYPE s summary\ns{quantile=\"1\"} 2\ns{quantile=\"0.5\"} NaN\n# TYPE g gauge\ng{le=\"1\"} 2\n",
		"# TYPE h histogram\nh_bucket{le=\"1\"} 1\n{\"g\",le=\"1\"} 2\nh_bucket{le=\"2\"} 1\n",
		"ok 1\nbad{ 1\n", "ok 1\n!\n",
	} {
		alike(t, []byte(body))
	}
	var many strings.Builder
	many.WriteString("# TYPE h histogram\n")
	for i := range 3 * maxSingle {
		fmt.Fprintf(&many, "h_bucket{le=\"%d\"} %d\n", i, i)
	}
	alike(t, []byte(many.String()), []byte("# TYPE h histogram\nh_bucket{le=\"5\"} 1\nh_bucket{le=\"5000\"} 1\n"))
}

// TestRandomLines puts pieces of the format together.
func TestRandomLines(t *testing.T) {
	pieces := []string{
		"# TYPE ", "# HELP ", "#", " ", "\t", "\n", "a", "b_bucket", "c:1", "{", "}", "{le=\"1\"}", "{quantile=\"0.5\",x=\"y}\"}", "x=\"1\"", ",", "\"", "\\", "=",
		"1", "-2.5", "NaN", "+Inf", "1700000000000", "counter", "gauge", "histogram", "summary", "untyped", "text", "ü", "\xff", " 1\n", " 2 7\n", "\na{x=\"1\"} 1\n", "\n# TYPE a counter\n",
	}
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var body strings.Builder
		for range r.IntN(14) {
			body.WriteString(pieces[r.IntN(len(pieces))])
		}
		alike(t, []byte(body.String()))
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\",x=\"\\\"\"} 1 5\nb NaN\n"))
	f.Fuzz(func(t *testing.T, body []byte) { alike(t, body) })
}

func BenchmarkText(b *testing.B) {
	var body strings.Builder
	for i := range 100 {
		fmt.Fprintf(&body, "# HELP node_metric_%d Some help text.\n# TYPE node_metric_%d counter\n", i, i)
		for j := range 10 {
			fmt.Fprintf(&body, "node_metric_%d{instance=\"server-1:9100\",cpu=\"%d\",mode=\"user\"} %d.25 1700000000000\n", i, j, j)
		}
	}
	for _, alone := range []bool{true, false} {
		b.Run(fmt.Sprintf("parser=%t", alone), func(b *testing.B) {
			g := remotewrite.NewGeneration(1)
			limits := remotewrite.DefaultLimits()
			rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(1_700_000_000_000)), Labels: []series.Label{{Name: "job", Value: "x"}}}
			for b.Loop() {
				d := textDecoder{Text: Text{Body: []byte(body.String())}}
				read := d.read
				if alone {
					read = func(c *remotewrite.Collector) error {
						d.c = c
						return d.parseRest(d.Body)
					}
				}
				batch, err := remotewrite.Collect(g, rules, remotewrite.NewRoom(body.Len(), 1<<30, 1<<30, nil), read)
				if err != nil {
					b.Fatal(err)
				}
				g.Stored.Note(batch.Metadata)
				batch.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
		})
	}
}
