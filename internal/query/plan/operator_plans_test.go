package plan

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/plantest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// planned are queries over operated.txt whose plans and statements plans.txt pins, in this order.
var planned = []string{
	`2 ^ (a > 3)`,
	`a / scalar(sum(b))`,
	`time() - scalar(b{job="z"}) * 2`,
	`a / on (job, inst) b`,
	`b_info * on (inst) group_right (ver) a`,
	`a * on (inst) group_left (node) topk by (inst) (1, moved)`,
	`topk(1, a) - on () topk(1, b)`,
	`a and on (inst) (sum by (inst, job) (-b) * 2)`,
	`a unless ignoring (job, env) b`,
	`a or on () up`,
	`sum by (job) (a) or sum by (job) (b)`,
	`(a or b) * 2`,
	`label_join(a, "id", "/", "job", "inst")`,
	`histogram_quantile(0.9, sum by (le) (rate(lat_bucket[2m])))`,
	`absent(up{job="y"} == 1)`,
	`bottomk by (job) (2, a)`,
	`limit_ratio(-0.5, a)`,
	`timestamp(a + 1)`,
	`quantile_over_time(0.5, sum(a)[5m:45s] offset 1m)`,
	`sort_desc(sum by (job) (a))`,
	`a + on (inst) twice`,
	`count_values("v", a * 2)`,
}

// TestOperatorPlans pins plans and statements: the same query over the same series has the same
// bytes.
func TestOperatorPlans(t *testing.T) {
	store := operated(t)
	var sb strings.Builder
	for _, text := range planned {
		p := planFor(t, store, text, window{600_000, 720_000, 60_000}.options(false))
		fmt.Fprintf(&sb, "> %s\n%s\n", text, explained(p))
	}
	const golden = "testdata/plans.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(sb.String()), 0o644))
	}
	require.Equal(t, plantest.Read(t, golden), sb.String(), "run with -update if this is meant")
}
