package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan/vector"
)

// partitioned are queries that can be computed in parts.
var partitioned = []string{
	`c`, `rate(c[2m])`, `last_over_time({__name__=~"c|d"}[1m] offset 1m)`, `-abs(c)`, `clamp_max(c, scalar(d{g="0", i="0"}))`, `sum by (g) (c)`, `stddev by (g) (c)`,
	`quantile by (i) (0.3, rate(c[1m]))`, `abs(sum by (i) (c))`, `sum(c)`, `min(c)`, `max by (nope) (-c)`, `count(rate(c[2m]))`, `group(c)`, `avg(c)`, `avg by (g) (abs(c))`,
	`sum(sum by (g, i) (c))`, `avg(max by (g) (c))`, `sum without (i) (c)`, `count by (__name__) ({__name__=~"c|d"})`, `c @ 900`, `sum(c @ 900)`, `avg by (g) (rate(c[1m] @ end()))`,
	`sum(c offset 1m) `, `max(d)`, `min by (nope) (d)`, `avg by (i) (d)`, `c or on (g) vector(1)`, `vector(1) or on (g) c`, `min by (g) (max_over_time(d[1m]))`,
}

// randomWorld generates series of two metrics in a few groups, with all kinds of values and gaps.
func randomWorld(r *rand.Rand) string {
	var sb strings.Builder
	sb.WriteString("load 30s\n")
	for g := range 3 {
		for i := range 1 + r.IntN(9) {
			for _, m := range []string{"c", "d"} {
				fmt.Fprintf(&sb, "\t%s{g=\"%d\", i=\"%d\"}", m, g, i)
				for range 40 {
					switch x := r.IntN(24); {
					case x == 0:
						sb.WriteString(" _x11")
					case x == 1 && m == "d":
						sb.WriteString(" NaN")
					case x == 2 && m == "d":
						sb.WriteString(" -Inf")
					default:
						fmt.Fprintf(&sb, " %d.%d", r.IntN(1000)-500, r.IntN(100))
					}
				}
				sb.WriteByte('\n')
			}
		}
	}
	return sb.String()
}

// TestPartsMakeTheWhole computes subtrees whole and in parts of random sizes, and expects equal
// results. Sums of parts may differ in the last bits.
func TestPartsMakeTheWhole(t *testing.T) {
	const cases = 12
	cut := map[string]bool{}
	memory := memoryOf(t)
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 1))
		store := inOrder{promqltest.LoadedStorage(t, randomWorld(r)), nil}
		delayed := seed%2 == 0
		sim := &simulated{Queryable: store, t: t, engine: testEngine(t, delayed)}
		for _, text := range partitioned {
			p := planPlaced(t, store, text, window{600_000, 960_000, 60_000}.options(delayed), seed%3 != 0)
			require.Len(t, p.Pushed, 1, text)
			s := p.Pushed[0]
			limit := 1 + r.Int64N(rowsOf(s.Leaves))
			parts, merge, ok := s.Partition(limit)
			if !ok {
				continue
			}
			require.Greater(t, len(parts), 1, text)
			cut[text] = true
			results := make([][]vector.Row, len(parts))
			for i, part := range parts {
				results[i] = rowsFrom(sim, part)
			}
			got, ok, err := merge(results, memory)
			require.NoError(t, err)
			if !ok {
				require.Equal(t, `avg by (i) (d)`, text, "an average of infinities")
				continue
			}
			requireRows(t, rowsFrom(sim, s), got, "seed %d, %d samples at a time: %s\n%s", seed, limit, text, p)
		}
	}
	assert.Len(t, cut, len(partitioned), "every query was cut at least once")
}

// memoryOf returns memory without a limit.
func memoryOf(t *testing.T) vector.Memory {
	b := promsql.NewBudget(0)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return vector.Memory{Room: func(n int) []float64 { return make([]float64, n) }, Budget: b}
}

// planPlaced is planFor with places: the series are stored in another order than that of their
// labels.
func planPlaced(t *testing.T, store storage.Queryable, text string, o Options, placed bool) *Plan {
	expr, err := testParser.ParseExpr(text)
	require.NoError(t, err)
	q, err := Prepare(expr, o)
	require.NoError(t, err)
	resolved := resolve(t, store, q.Selectors())
	for _, r := range resolved {
		for i := range r.Series {
			if placed {
				r.Series[i].Place = int64(r.Series[i].ID%19) + 1
			}
		}
	}
	return q.Build(resolved)
}

// rowsFrom computes a subtree, or a part of one, from only the series of its leaves.
func rowsFrom(sim *simulated, p *Pushed) []vector.Row {
	mine := map[string]bool{}
	for _, l := range p.Leaves {
		for _, s := range l.Resolution.Series {
			mine[s.Labels.String()] = true
		}
	}
	only := *sim
	only.Queryable = inOrder{sim.Queryable, func(l labels.Labels) bool { return mine[l.String()] }}
	average, ok := p.Root.(*averageNode)
	if !ok {
		return rowsOfValues(p, only.values(p), 1, 0)
	}
	asked := *p
	asked.Root, asked.Labels = &average.groupNode, nil
	for i := 0; i < len(p.Labels); i += 2 {
		asked.Labels = append(asked.Labels, p.Labels[i])
	}
	var out []vector.Row
	for k, op := range []string{"sum", "count"} {
		only.replace = strings.NewReplacer("avg", op)
		out = append(out, rowsOfValues(p, only.values(&asked), 2, uint32(k))...)
	}
	return out
}

// rowsOfValues returns values i as row scale*i+plus.
func rowsOfValues(p *Pushed, values []map[int64]float64, scale, plus uint32) []vector.Row {
	var out []vector.Row
	for i, vs := range values {
		if vs == nil {
			continue
		}
		row := vector.Row{I: scale*uint32(i) + plus, V: make([]float64, p.Grid.N)}
		for k := range row.V {
			v, ok := vs[p.Grid.Start+int64(k)*p.Grid.Step]
			if !ok {
				v = math.Float64frombits(value.StaleNaN)
			}
			row.V[k] = v
		}
		out = append(out, row)
	}
	return out
}

func requireRows(t *testing.T, want, got []vector.Row, msg string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want), fmt.Sprintf(msg, args...))
	for i := range want {
		require.Equal(t, want[i].I, got[i].I, fmt.Sprintf(msg, args...))
		for k, w := range want[i].V {
			g := got[i].V[k]
			same := value.IsStaleNaN(w) == value.IsStaleNaN(g) && (bits(w) == bits(g) || math.Abs(w-g) <= 1e-12*math.Abs(w))
			require.True(t, same, "series %d, step %d: %v and %v: %s", want[i].I, k, w, g, fmt.Sprintf(msg, args...))
		}
	}
}

// TestPartsAreBounded divides a rate over the known series, which have 100 samples each.
func TestPartsAreBounded(t *testing.T) {
	count := func(text string, limit int64) []int64 {
		p := planKnown(t, text, ranged(instant), nil).Pushed[0]
		parts, _, ok := p.Partition(limit)
		require.Equal(t, ok, len(parts) > 0)
		var rows []int64
		for _, part := range parts {
			assert.Equal(t, p.Name, part.Name)
			assert.Equal(t, p.Grid, part.Grid)
			rows = append(rows, rowsOf(part.Leaves))
		}
		return rows
	}
	assert.Empty(t, count(`rate(c_total[2m])`, 300), "it is small enough")
	assert.Equal(t, []int64{200, 100}, count(`rate(c_total[2m])`, 210))
	assert.Equal(t, []int64{100, 100, 100}, count(`rate(c_total[2m])`, 1), "a series is not cut")
	assert.Equal(t, []int64{200, 100}, count(`stddev by (job) (c_total)`, 150), "a group is not cut")
	assert.Equal(t, []int64{100, 100, 100}, count(`sum by (job) (c_total)`, 150), "a sum can be")
	assert.Equal(t, []int64{200, 200, 200}, count(`c_total / (c_total offset 1m)`, 210), "both sides are cut alike")
	assert.Empty(t, count(`topk(1, c_total)`, 10), "every series counts for every other")
	assert.Empty(t, count(`sum(c_total) / sum(c_total offset 1m)`, 10), "one result of all")
	assert.Empty(t, count(`sum(c_total or on (job) vector(1))`, 150), "each part would add the one")
}

// TestAverageThatOverflows: an average whose sum exceeds the largest float cannot be merged.
func TestAverageThatOverflows(t *testing.T) {
	p := planKnown(t, `avg(c_total)`, instant, nil).Pushed[0]
	_, merge, ok := p.Partition(100)
	require.True(t, ok)
	absent := math.Float64frombits(value.StaleNaN)
	rows := func(sum, n float64) []vector.Row {
		return []vector.Row{{I: 0, V: []float64{sum}}, {I: 1, V: []float64{n}}}
	}
	memory := memoryOf(t)
	got, ok, err := merge([][]vector.Row{rows(6, 2), rows(absent, absent), rows(3, 1)}, memory)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, []vector.Row{{I: 0, V: []float64{3}}}, got)
	_, ok, err = merge([][]vector.Row{rows(1.5e308, 1), rows(1.5e308, 1), rows(1, 1)}, memory)
	require.NoError(t, err)
	assert.False(t, ok)
}

// TestMergedListsOfOneElement: lists of one element hold at all steps.
func TestMergedListsOfOneElement(t *testing.T) {
	p := planKnown(t, `max(c_total)`, ranged(instant), nil).Pushed[0]
	_, merge, ok := p.Partition(150)
	require.True(t, ok)
	for _, first := range []int{0, 1} {
		parts := [][]vector.Row{{{I: 0, V: []float64{2}}}, {{I: 0, V: []float64{1, 3, math.NaN(), 2}}}, nil}
		parts[0], parts[first] = parts[first], parts[0]
		got, ok, err := merge(parts, memoryOf(t))
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, []vector.Row{{I: 0, V: []float64{2, 3, 2, 2}}}, got)
	}
}
