package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/plantest"
)

// inParts are the expressions of dashboards.txt that one statement does not answer, with the
// reason. The list may only become shorter.
var inParts = map[string]string{
	`count by (job) (count_values by (job) ("config_hash", alertmanager_config_hash{job="alertmanager"})) != 1`: "count_values makes labels of values",
	`histogram_quantile(0.01, sum without (namespace, service, endpoint) (rate(apiserver_client_certificate_expiration_seconds_bucket{job="apiserver"}[5m]))) < 604800 and on (job, cluster, instance) apiserver_client_certificate_expiration_seconds_count{job="apiserver"} > 0`: "a histogram_quantile can be left out below it",
	`histogram_quantile(0.99, sum(rate(kubelet_pod_worker_duration_seconds_bucket{job="kubelet"}[5m])) by (cluster, instance, le)) * on (cluster, instance) group_left (node) kubelet_node_name{job="kubelet"} > 60`:                                                               "a histogram_quantile can be left out below it",
}

// resolveOn returns the series of each selector.
func resolveOn(t testing.TB, s *plantest.Shelf, selectors []Selector) map[*parser.VectorSelector]*Resolution {
	out := map[*parser.VectorSelector]*Resolution{}
	for _, sel := range selectors {
		r := &Resolution{}
		for _, l := range s.Series(t, sel.Expr.Name) {
			if !slices.ContainsFunc(sel.Matchers, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) }) {
				r.Series = append(r.Series, Series{ID: l.Hash(), Labels: l})
				r.Rows += 240
			}
		}
		require.NotEmpty(t, r.Series, "world.txt has no series of %s", sel.Expr)
		out[sel.Expr] = r
	}
	return out
}

// TestDashboardsArePushedWhole expects that one statement answers each expression of
// dashboards.txt, except those in inParts.
func TestDashboardsArePushedWhole(t *testing.T) {
	world, texts := plantest.ReadShelf(t, "testdata/world.txt"), plantest.Lines(t, "testdata/dashboards.txt")
	require.GreaterOrEqual(t, len(texts), 150)
	for name, w := range map[string]window{"range": {3_600_000, 7_200_000, 60_000}, "instant": {7_200_000, 7_200_000, 0}} {
		t.Run(name, func(t *testing.T) {
			whole := 0
			for _, text := range texts {
				expr, err := testParser.ParseExpr(text)
				require.NoError(t, err, text)
				q, err := Prepare(expr, w.options(false))
				require.NoError(t, err, text)
				p := q.Build(resolveOn(t, world, q.Selectors()))
				require.NotEmpty(t, p.Pushed, "%s\n%s", text, p)
				for _, s := range p.Pushed {
					assert.NotEmpty(t, s.Labels, "a subtree of %s has no series: nothing matches in world.txt\n%s", text, p)
				}
				if wholly(p) {
					whole++
					assert.NotContains(t, inParts, text, "this is pushed whole by now")
					continue
				}
				if reason, ok := inParts[text]; assert.True(t, ok, "not pushed whole: %s\n%s", text, p) {
					assert.Contains(t, strings.Join(p.Kept, "\n"), reason)
				}
			}
			t.Logf("%d of %d expressions are pushed whole", whole, len(texts))
			assert.GreaterOrEqual(t, float64(whole), 0.95*float64(len(texts)))
		})
	}
}
