package query_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestGroupsOfEveryNumber: DuckDB gets group numbers of eight bits if they fit, and the answers are
// those of the engine on both sides of that limit. Some series have no sample at some steps.
func TestGroupsOfEveryNumber(t *testing.T) {
	store := laketest.NewDir(t)
	plain, pushed := laketest.New(t, store, laketest.PushNone), laketest.New(t, store, laketest.PushAll)
	now := laketest.Now()
	var rows []segment.Row
	for i := range 258 {
		for _, job := range []string{"a", "b"} {
			r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprintf("%03d", i), "n", strconv.Itoa(i%7), "job", job)}
			for k := range int64(20) {
				if (int64(i)+k)%11 == 0 && job == "a" {
					continue
				}
				r.Floats = append([]segment.Float{{T: now.UnixMilli() - k*minute, V: float64(i) + float64(k)/8}}, r.Floats...)
			}
			rows = append(rows, r)
		}
	}
	plain.Write(tenant.Default, rows)
	asks := 0
	numbers := make([]string, 258)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("%03d", i)
	}
	for _, last := range []int{0, 1, 254, 255, 256, 257} {
		for _, text := range []string{
			`sum by (i) (m{i=~%q})`, `avg by (i) (rate(m{i=~%q}[5m]))`, `count by (i) (m{i=~%q} > 100)`, `quantile by (i) (0.5, m{i=~%q})`,
			`max without (job) (m{i=~%q})`, `sum by (n) (m{i=~%q})`, `sum(max by (i) (m{i=~%q}))`, `abs({__name__="m",job="a",i=~%q})`,
		} {
			text = fmt.Sprintf(text, strings.Join(numbers[:last+1], "|"))
			for _, a := range []laketest.Query{{Text: text, End: now}, {Text: text, Start: now.Add(-25 * time.Minute), End: now, Step: 77 * time.Second}} {
				laketest.Same(t, plain.Exec(t.Context(), a), pushed.Exec(t.Context(), a), a)
				asks++
			}
		}
	}
	require.Equal(t, float64(asks), pushed.Counted("promlake_query_subtrees_total"))
}
