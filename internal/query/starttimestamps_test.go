package query_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestStartTimestampNeedsItsFeature: start_timestamp() has no result, as in Prometheus, unless the
// feature use-start-timestamps is on.
func TestStartTimestampNeedsItsFeature(t *testing.T) {
	store := laketest.NewDir(t)
	now := laketest.Now()
	r := segment.Row{Labels: laketest.Metric("m", "i", "0")}
	for k := range int64(10) {
		r.Floats = append(r.Floats, segment.Float{T: now.UnixMilli() - (9-k)*minute, V: float64(k), ST: now.UnixMilli() - 20*minute})
	}
	laketest.New(t, store, query.Settings{}).Write(tenant.Default, []segment.Row{r})
	for text, want := range map[string]string{
		`start_timestamp(m)`:                              `{i="0"} => 1699998800 @[1700000000000]`,
		`start_timestamp((m))`:                            `{i="0"} => 1699998800 @[1700000000000]`,
		`start_timestamp(m @ end() offset 1m)`:            `{i="0"} => 1699998800 @[1700000000000]`,
		`sum(start_timestamp(m)) - 1699998000`:            `{} => 800 @[1700000000000]`,
		`max_over_time(start_timestamp(m{i="0"})[5m:1m])`: `{i="0"} => 1699998800 @[1700000000000]`,
		`start_timestamp(m + 0)`:                          ``,
	} {
		for _, pushed := range []int64{-1, math.MaxInt64} {
			for _, on := range []bool{true, false} {
				l := laketest.New(t, store, query.Settings{UseStartTimestamps: on, MinPushedSamples: pushed})
				res := l.Exec(t.Context(), laketest.Query{Text: text, End: now})
				require.NoError(t, res.Err, text)
				if on {
					require.Equal(t, want, res.Value.String(), text)
				} else {
					require.Empty(t, res.Value.String(), text)
				}
				res = l.Exec(t.Context(), laketest.Query{Text: text, Start: now.Add(-3 * time.Minute), End: now, Step: time.Minute})
				require.NoError(t, res.Err, text)
				require.Equal(t, on && want != "", res.Value.String() != "", text)
			}
		}
	}
}
