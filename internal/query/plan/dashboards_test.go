package plan

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/plan/plantest"
)

// inParts are the expressions of dashboards.txt that one statement does not answer, with the
// reason. The list may only become shorter.
var inParts = map[string]string{
	`count by (job) (count_values by (job) ("config_hash", alertmanager_config_hash{job="alertmanager"})) != 1`: "count_values makes labels of values",
	`histogram_quantile(0.01, sum without (namespace, service, endpoint) (rate(apiserver_client_certificate_expiration_seconds_bucket{job="apiserver"}[5m]))) < 604800 and on (job, cluster, instance) apiserver_client_certificate_expiration_seconds_count{job="apiserver"} > 0`: "a histogram_quantile can be left out below it",
	`histogram_quantile(0.99, sum(rate(kubelet_pod_worker_duration_seconds_bucket{job="kubelet"}[5m])) by (cluster, instance, le)) * on (cluster, instance) group_left (node) kubelet_node_name{job="kubelet"} > 60`:                                                               "a histogram_quantile can be left out below it",
}

// shelf is the content of world.txt.
type shelf struct {
	domains map[string][]string
	metrics [][]string // pattern, labels...
}

// lines returns the lines of all sections of a file.
func lines(t testing.TB, name string) (out []string) {
	for _, s := range plantest.Sections(t, name) {
		out = append(out, s.Lines...)
	}
	return out
}

func readShelf(t testing.TB) *shelf {
	s := &shelf{domains: map[string][]string{}}
	for _, l := range lines(t, "testdata/world.txt") {
		words := strings.Fields(l)
		if words[0] == "label" {
			s.domains[words[1]] = words[2:]
			continue
		}
		s.metrics = append(s.metrics, words)
	}
	return s
}

// series returns the label sets of a metric.
func (s *shelf) series(t testing.TB, name string) []labels.Labels {
	at := slices.IndexFunc(s.metrics, func(m []string) bool {
		ok, err := path.Match(m[0], name)
		require.NoError(t, err)
		return ok
	})
	require.GreaterOrEqual(t, at, 0, "world.txt has no metric %s", name)
	sets := []map[string]string{{model.MetricNameLabel: name}}
	var follow [][2]string
	for _, l := range s.metrics[at][1:] {
		if name, from, ok := strings.Cut(l, "~"); ok {
			follow = append(follow, [2]string{name, from})
			continue
		}
		name, values, ok := strings.Cut(l, "=")
		domain := strings.Split(values, "|")
		if !ok {
			domain = s.domains[name]
		}
		require.NotEmpty(t, domain, "world.txt has no values of label %s", name)
		var more []map[string]string
		for _, set := range sets {
			for _, v := range domain {
				more = append(more, with(set, name, v))
			}
		}
		sets = more
	}
	out := make([]labels.Labels, len(sets))
	for i, set := range sets {
		for _, f := range follow {
			set[f[0]] = s.follows(set, f[0], strings.Split(f[1], "+"))
		}
		out[i] = labels.FromMap(set)
	}
	slices.SortFunc(out, labels.Compare)
	return out
}

func with(set map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	for k, v := range set {
		out[k] = v
	}
	return out
}

// follows returns the value of a label that other labels determine: one of its own values, if it
// has any, else the values of the others joined.
func (s *shelf) follows(set map[string]string, name string, from []string) string {
	var values []string
	at := 0
	for _, f := range from {
		values = append([]string{set[f]}, values...)
		at += max(slices.Index(s.domains[f], set[f]), 0)
	}
	if own := s.domains[name]; len(own) > 0 {
		return own[at%len(own)]
	}
	return strings.Join(values, ".")
}

// resolve returns the series of each selector.
func (s *shelf) resolve(t testing.TB, selectors []Selector) map[*parser.VectorSelector]*Resolution {
	out := map[*parser.VectorSelector]*Resolution{}
	for _, sel := range selectors {
		r := &Resolution{}
		for _, l := range s.series(t, sel.Expr.Name) {
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
	world, texts := readShelf(t), lines(t, "testdata/dashboards.txt")
	require.GreaterOrEqual(t, len(texts), 150)
	for name, w := range map[string]window{"range": {3_600_000, 7_200_000, 60_000}, "instant": {7_200_000, 7_200_000, 0}} {
		t.Run(name, func(t *testing.T) {
			whole := 0
			for _, text := range texts {
				expr, err := testParser.ParseExpr(text)
				require.NoError(t, err, text)
				q, err := Prepare(expr, w.options(false))
				require.NoError(t, err, text)
				p := q.Build(world.resolve(t, q.Selectors()))
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
