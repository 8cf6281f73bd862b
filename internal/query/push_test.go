package query_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestPushedAnswers: queries evaluated in SQL have the answers of the engine alone, in every layout
// of the samples, with and without deletions.
func TestPushedAnswers(t *testing.T) {
	rows := laketest.PushRows()
	for _, layout := range laketest.Layouts {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/deleted=%v", layout.Name, deleted), func(t *testing.T) {
				store := laketest.NewDir(t)
				plain, pushed := laketest.New(t, store, laketest.PushNone), laketest.New(t, store, laketest.PushAll)
				layout.Write(plain, tenant.Default, rows)
				if deleted {
					laketest.DeleteAll(plain)
				}
				for _, text := range laketest.PushedQueries {
					for _, a := range laketest.Ways(text) {
						laketest.Same(t, plain.Exec(t.Context(), a), pushed.Exec(t.Context(), a), a)
					}
				}
				require.Zero(t, plain.Counted("promlake_query_pushed_total"))
				require.Greater(t, pushed.Counted("promlake_query_subtrees_total"), 2.5*float64(len(laketest.PushedQueries)))
			})
		}
	}
}

// TestManyDeletions: selectors that many deletions concern are pushed like others.
func TestManyDeletions(t *testing.T) {
	store := laketest.NewDir(t)
	plain, pushed := laketest.New(t, store, laketest.PushNone), laketest.New(t, store, laketest.PushAll)
	laketest.Layouts[0].Write(plain, tenant.Default, laketest.PushRows())
	now := laketest.Now().UnixMilli()
	for i := range int64(40) {
		from := now - (4*i+2)*minute
		plain.Delete(tenant.Default, []*labels.Matcher{laketest.Equal("i", fmt.Sprint(i%4))}, from, from+i*minute/20)
	}
	queries := []string{`m1`, `sum by (job) (rate(m1[5m]))`, `max_over_time(m2[10m])`, `topk(3, count_over_time(m1{i="1"}[20m]))`}
	for _, text := range queries {
		for _, a := range laketest.Ways(text) {
			laketest.Same(t, plain.Exec(t.Context(), a), pushed.Exec(t.Context(), a), a)
		}
	}
	require.Greater(t, pushed.Counted("promlake_query_subtrees_total"), 2.5*float64(len(queries)))
}

// TestQueryOfNoDuration: a query that upstream cannot prepare fails with upstream's error.
func TestQueryOfNoDuration(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	_, err := l.Engine().NewRangeQuery(t.Context(), l, nil, `rate(a[step() - 1h])`, time.Unix(0, 0), time.Unix(60, 0), 30*time.Second)
	require.EqualError(t, err, "7:18: duration must be greater than 0")
}
