package sql

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/tests/support/laketest"
)

// observed drops a result, and notes how far the statement is at each write.
type observed struct {
	laketest.Result
	progress request.Progress
	shares   []float64
}

func (o *observed) Write(p []byte) (int, error) {
	if part, ok := o.progress.Share(); ok {
		o.shares = append(o.shares, part)
	}
	return len(p), nil
}

// ask runs a statement and returns how far it was at each write, and at its end.
func (o *observed) ask(l *laketest.Lake, text string) (end float64, ok bool) {
	l.TB.Helper()
	o.shares = nil
	ctx := request.WithProgress(l.TB.Context(), &o.progress)
	require.NoError(l.TB, l.SQL(ctx, query.Statement{Text: text, Format: "csv"}, o), text)
	return o.progress.Share()
}

// TestSQLProgress: a scan that is larger than what DuckDB buffers of a result is at no part of it at
// first, then at more and more, and at all at the end; each scan of a statement has its share.
func TestSQLProgress(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	var rows []segment.Row
	for i := range 40 {
		r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i))}
		for j := range 20000 {
			r.Floats = append(r.Floats, segment.Float{T: int64(j) * 100, V: float64(i * j)})
		}
		rows = append(rows, r)
	}
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)
	var o observed
	end, ok := o.ask(l, "SELECT * FROM samples")
	require.True(t, ok)
	require.InDelta(t, 1, end, 1e-9)
	require.Less(t, o.shares[0], 0.9)
	between := 0
	for i, s := range o.shares {
		require.True(t, i == 0 || s >= o.shares[i-1], "%v", o.shares)
		if s > 0 && s < 1 {
			between++
		}
	}
	require.Positive(t, between)

	end, _ = o.ask(l, "SELECT count(*) FROM samples WHERE metric = 'none'")
	require.InDelta(t, 1, end, 1e-9, "nothing is read")
	for _, text := range []string{"SELECT 1", "FROM series", "EXPLAIN FROM samples", "SELECT count(*) FROM promql('m', now(), now(), 1)"} {
		o.progress = request.Progress{}
		_, ok = o.ask(l, text)
		require.False(t, ok, text)
	}
}

// TestSQLProgressOfTables: all tables of samples have been read at the end of a statement that reads
// them, from all kinds of objects.
func TestSQLProgressOfTables(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, laketest.RandomRows(rand.New(rand.NewPCG(31, 32))))
	start, end := laketest.Now().Add(-24*time.Hour).Unix(), laketest.Now().Unix()
	for _, from := range []string{
		"samples", "stored_samples", "histograms", "exemplars", "rollup_5m", "rollup_1h", fmt.Sprintf("promlake_metric('m1', %d, %d)", start, end),
		"samples AS a JOIN rollup_1h AS b USING (metric, labels)",
	} {
		var o observed
		part, ok := o.ask(l, "SELECT count(*) FROM "+from)
		require.True(t, ok, from)
		require.InDelta(t, 1, part, 1e-9, from)
	}
}
