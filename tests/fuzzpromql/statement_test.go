package fuzzpromql

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/request"
)

// untranslated are the reasons for which a part of a query may be left to promql().
var untranslated = []string{
	"is of native histograms", "drops the names of several metrics", "is not constant", "anchored and smoothed selectors", "count_values", "fill modifiers",
	"histogram_avg()", "histogram_count()", "histogram_fraction()", "histogram_quantiles()", "histogram_stddev()", "histogram_stdvar()", "histogram_sum()", "info()",
	"it matches or includes the metric's name", "it reads or sets the metric's name, or a label that no series has", "limit_ratio", "start_timestamp()",
	"is not a constant of 1 or more", "the subquery has no steps", "upstream evaluates it at another time than that of its @",
	"timestamp() takes @ and no offset", "the replacement names a group", "upstream rejects its parameters",
}

// TestStatements: the statement of a random query has its floats, bit for bit. Queries that fail
// have none, and those that are left to promql() whole are not compared.
func TestStatements(t *testing.T) {
	n, seed := setting(t, "PROMLAKE_FUZZPROMQL_STATEMENTS", 200), setting(t, "PROMLAKE_FUZZPROMQL_SEED", 0)
	way := slices.IndexFunc(ways, func(w way) bool { return w.name == withoutStatements })
	d := slices.DeleteFunc(newData(seed/perWorld), func(r segment.Row) bool { return len(r.Hists) > 0 })
	st := newWorld(t, seed/perWorld, d).stages[way]
	compared, whole := 0, 0
	for i := seed; i < seed+n; i++ {
		a := newAsk(i)
		a.way, a.lookback = way, 0
		ctx := tenant.With(t.Context(), a.tenant)
		want := run(ctx, st.Engine(), st, a)
		if want.err != "" {
			continue
		}
		sql := statementOf(t, a)
		for _, k := range sql.Kept {
			require.True(t, slices.ContainsFunc(untranslated, func(reason string) bool { return strings.HasSuffix(k, reason) }), k)
		}
		if strings.HasPrefix(sql.SQL, "FROM promql(") {
			continue
		}
		got, err := rowsOf(ctx, st, sql.SQL)
		require.NoError(t, err, "%v\n%s", a, sql.SQL)
		require.Empty(t, got.differs(outcome{series: want.series}), "%v\n%s", a, sql.SQL)
		for k, ps := range want.series {
			for j, p := range ps {
				require.True(t, identical(got.series[k][j].f, p.f), "%v\n%s\n%s has %v at %d, want %v", a, sql.SQL, k, got.series[k][j].f, p.t, p.f)
			}
		}
		if compared++; len(sql.Kept) == 0 {
			whole++
		}
	}
	t.Logf("%d of %d queries compared, %d of them translated whole", compared, n, whole)
	require.Greater(t, whole, int(n)/2)
}

func statementOf(t *testing.T, a ask) explain.Translation {
	s, err := explain.Translate(request.Question{Text: a.query, Start: time.UnixMilli(a.start), End: time.UnixMilli(a.end), Step: time.Duration(a.step) * time.Millisecond, Lookback: 5 * time.Minute})
	require.NoError(t, err)
	return s
}

// answer is a result of the SQL endpoint in memory.
type answer struct{ bytes.Buffer }

// Reset implements request.Output.
func (a *answer) Reset() bool { a.Buffer.Reset(); return true }

// rowsOf runs a statement with the columns of promql().
func rowsOf(ctx context.Context, st *query.Stage, text string) (o outcome, err error) {
	var out answer
	if err := st.SQL(ctx, query.Statement{Text: text, Format: "json"}, &out); err != nil {
		return o, err
	}
	var a struct{ Data struct{ Rows [][]any } }
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return o, err
	}
	o.series = map[string][]point{}
	for _, r := range a.Data.Rows {
		lb := labels.NewBuilder(labels.EmptyLabels())
		if name, ok := r[0].(string); ok {
			lb.Set(model.MetricNameLabel, name)
		}
		for k, v := range r[1].(map[string]any) {
			lb.Set(k, v.(string))
		}
		at, err := time.Parse(time.RFC3339Nano, r[2].(string))
		if err != nil {
			return o, err
		}
		v, ok := r[3].(float64)
		if s, isText := r[3].(string); isText {
			if v, err = strconv.ParseFloat(s, 64); err != nil {
				return o, err
			}
			ok = true
		}
		if !ok {
			v = math.NaN()
		}
		k := lb.Labels().String()
		o.series[k] = append(o.series[k], point{t: at.UnixMilli(), f: v})
	}
	for _, ps := range o.series {
		slices.SortFunc(ps, func(a, b point) int { return int(a.t - b.t) })
	}
	return o, nil
}
