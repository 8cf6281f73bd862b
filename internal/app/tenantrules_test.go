package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app"
)

// set sends a rule group, or removes one if body is "".
func (c caller) set(t *testing.T, base, path, body string) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodDelete
	}
	r, err := http.NewRequestWithContext(t.Context(), method, base+"/prometheus/config/v1/rules/"+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: c}).Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, resp.StatusCode, string(text))
}

// values waits until an expression has this many results.
func (c caller) values(t *testing.T, base, expr string, n int) {
	t.Helper()
	body := lines{}
	require.Eventually(t, func() bool {
		_, text := c.ask(t, base, expr)
		body.b.Reset()
		_, _ = body.Write([]byte(text))
		return strings.Contains(text, `"status":"success"`) && strings.Count(text, `"metric"`) == n
	}, 2*time.Minute, 20*time.Millisecond, "%s of %s: %s", expr, c.tenant, &body)
}

// groups returns the file and name of the groups that a tenant sees.
func (c caller) groups(t *testing.T, base string) (out []string) {
	t.Helper()
	code, body := c.get(t, base+"/api/v1/rules")
	require.Equal(t, http.StatusOK, code, body)
	var answer struct {
		Data struct{ Groups []struct{ File, Name string } }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	for _, g := range answer.Data.Groups {
		out = append(out, filepath.Base(g.File)+"/"+g.Name)
	}
	return out
}

// evaluating returns settings of a process over a store that evaluates the rules of tenants.
func evaluating(t *testing.T, store string) app.Settings {
	t.Helper()
	s := defaults()
	s.Process.Store, s.Compaction.Enabled = store, false
	s.Prometheus.Queue.Dir = filepath.Join(t.TempDir(), "queue")
	s.Prometheus.PollInterval, s.Prometheus.ResendDelay = 50*time.Millisecond, 100*time.Millisecond
	s.Ruler.MinInterval = time.Millisecond
	return s
}

const sums = "name: sums\ninterval: 300ms\nrules:\n- {record: sum, expr: sum(up)}\n- {record: double, expr: 2 * sum}\n- {alert: Up, expr: up == 1, labels: {tenant: forged}}\n"

// TestRulesOfTenants: what tenants set at one process, another one evaluates, each with the data of
// its tenant only.
func TestRulesOfTenants(t *testing.T) {
	am := newAlertmanager(t)
	s, file := monitoring(t, fmt.Sprintf(`
rule_files: [files.yml]
alerting:
  alertmanagers: [{static_configs: [{targets: [%q]}]}]
  alert_relabel_configs: [{source_labels: [tenant], regex: forged, action: drop}, {source_labels: [tenant], target_label: team}]
`, am.addr))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "files.yml"), []byte("groups: [{name: f, interval: 300ms, rules: [{record: of_file, expr: '1'}]}]"), 0o600))
	store := s.Process.Store
	e := evaluating(t, store)
	e.Prometheus.ConfigFile = file
	edits := evaluating(t, store)
	edits.Prometheus.Evaluate = false
	there, here := start(t, e), start(t, edits)

	a, b, nobody := caller{tenant: "team-a"}, caller{tenant: "team-b"}, caller{}
	require.NoError(t, a.write(t, here.url, "up"))
	require.NoError(t, b.write(t, here.url, "up"))
	require.NoError(t, b.write(t, here.url, "up2"))
	a.set(t, here.url, "web", sums)
	b.set(t, here.url, "web", sums)
	nobody.set(t, here.url, "own", "name: g\ninterval: 300ms\nrules: [{record: of_api, expr: vector(3)}]\n")
	for _, c := range []caller{a, b} {
		c.values(t, there.url, "double == 2", 1)
		c.values(t, there.url, `ALERTS{alertname="Up",alertstate="firing",tenant="forged"}`, 1)
		require.Equal(t, []string{"web/sums"}, c.groups(t, there.url))
		_, body := c.get(t, there.url+"/api/v1/alerts")
		require.Contains(t, body, `"alertname":"Up"`)
		c.values(t, there.url, `{__name__=~"of_.*"}`, 0)
	}
	nobody.values(t, there.url, "of_file", 1)
	nobody.values(t, there.url, "of_api == 3", 1)
	require.Equal(t, []string{"files.yml/f", "own/g"}, nobody.groups(t, there.url))
	require.Empty(t, a.groups(t, here.url), "it evaluates nothing")
	require.Eventually(t, func() bool {
		seen := map[string]bool{}
		for _, x := range am.received("Up") {
			seen[x.Labels["tenant"]] = strings.HasSuffix(x.GeneratorURL, "&tenant="+x.Labels["tenant"])
			require.Equal(t, x.Labels["tenant"], x.Labels["team"], "alerts are relabeled when they have the tenant")
		}
		return len(seen) == 2 && seen["team-a"] && seen["team-b"]
	}, 2*time.Minute, 20*time.Millisecond)
	_, metrics := get(t, there.url+"/metrics")
	for _, line := range []string{
		"promlake_ruler_tenants 3", "promlake_ruler_groups 3", "promlake_ruler_load_failures_total 0",
		"promlake_ruler_groups_refused 0", `promlake_prometheus_rule_evaluation_failures_total{tenant="team-a"} 0`,
	} {
		require.Contains(t, metrics, "\n"+line+"\n")
	}
	require.NotContains(t, metrics, "web;", "names of groups are no labels")

	// A change replaces the group; what it no longer computes ends.
	a.set(t, here.url, "web", "name: sums\ninterval: 300ms\nrules: [{record: sum, expr: sum(up) + 10}]\n")
	a.values(t, there.url, "sum == 11", 1)
	a.values(t, there.url, `{__name__=~"double|ALERTS.*"}`, 0)
	b.values(t, there.url, "sum == 1", 1)

	// A restart goes on with the rules of the store.
	there.end(t)
	goesOn := func(metric string) string {
		return fmt.Sprintf("timestamp(%s) > %.3f", metric, float64(time.Now().UnixMilli())/1000)
	}
	sum, alert := goesOn("sum"), goesOn(`ALERTS{alertstate="firing"}`)
	there = start(t, e)
	a.values(t, there.url, sum, 1)
	b.values(t, there.url, alert, 1) // comes after the first evaluations of a process

	// The series of a group that is removed end, and so do its alerts.
	a.set(t, here.url, "web/sums", "")
	b.set(t, here.url, "web", "")
	for _, c := range []caller{a, b} {
		c.values(t, there.url, `{__name__=~"sum|double|ALERTS.*"}`, 0)
		require.Empty(t, c.groups(t, there.url))
	}
	nobody.values(t, there.url, goesOn("of_api"), 1)
	there.end(t)
	here.end(t)
}

// TestRefusedRules: a process does not evaluate groups that are beyond its limits, though another
// one has accepted them. It shows and counts them; the others go on.
func TestRefusedRules(t *testing.T) {
	store := "file://" + t.TempDir()
	s, edits := evaluating(t, store), evaluating(t, store)
	edits.Prometheus.Evaluate, edits.Ruler.MaxNameBytes = false, 1<<20
	s.Ruler.MaxMemoryBytes = 80 << 10
	there, here := start(t, s), start(t, edits)
	a := caller{tenant: "a"}
	group := func(name string) string {
		return fmt.Sprintf("name: %s\ninterval: 300ms\nrules: [{record: %s, expr: vector(1)}]\n", name, name)
	}
	a.set(t, here.url, "n", group(strings.Repeat("a", 10_000)))
	for _, name := range []string{"b", "c", "d"} {
		a.set(t, here.url, "n", group(name))
	}
	a.values(t, there.url, "b or label_replace(c, \"x\", \"y\", \"\", \"\")", 2)
	require.Eventually(t, func() bool {
		_, metrics := get(t, there.url+"/metrics")
		return strings.Contains(metrics, "\npromlake_ruler_groups_refused 2\n") && strings.Contains(metrics, "\npromlake_ruler_groups 2\n") && !strings.Contains(metrics, "aaa")
	}, 2*time.Minute, 20*time.Millisecond)
	_, body := a.get(t, there.url+"/api/v1/rules")
	require.Less(t, len(body), 5000)
	require.Contains(t, body, "bytes of the name of a rule group: 10000, the limit is 512 (--ruler.max-name-bytes)")
	require.Contains(t, body, "the limit is 81920 (--ruler.max-memory-per-tenant)")
	a.values(t, there.url, "d", 0)
	a.set(t, here.url, "n/b", "")
	a.values(t, there.url, "d", 1)
	there.end(t)
	here.end(t)
}

// TestOwnRulesCountAtOnce: a process does not wait for its next listing to see its own changes, and
// needs no configuration to evaluate them.
func TestOwnRulesCountAtOnce(t *testing.T) {
	s := evaluating(t, "file://"+t.TempDir())
	s.Prometheus.PollInterval = time.Hour
	srv := start(t, s)
	a := caller{tenant: "a"}
	for i := range 3 {
		a.set(t, srv.url, "n", fmt.Sprintf("name: g%d\ninterval: 300ms\nrules: [{record: r, expr: vector(%d)}]\n", i, i))
		a.values(t, srv.url, fmt.Sprintf("r == %d", i), 1)
		a.set(t, srv.url, fmt.Sprintf("n/g%d", i), "")
	}
	code, body := caller{}.get(t, srv.url+"/api/v1/status/buildinfo")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"ruler_config_api":"true"`)
	require.NotContains(t, body, "application")
	code, _ = get(t, srv.url+"/-/reload")
	require.Equal(t, http.StatusNotFound, code, "there is no configuration")
	srv.end(t)
}

// TestDamagedRules: the rules of a tenant that cannot be read are reported, and stay as they were;
// those of others go on. They count once they can be read.
func TestDamagedRules(t *testing.T) {
	dir := t.TempDir()
	s := evaluating(t, "file://"+dir)
	srv := start(t, s)
	a, b := caller{tenant: "a"}, caller{tenant: "b"}
	group := func(v int) string {
		return fmt.Sprintf("name: g\ninterval: 300ms\nrules: [{record: r, expr: vector(%d)}]\n", v)
	}
	a.set(t, srv.url, "n", group(1))
	b.set(t, srv.url, "n", group(1))
	a.values(t, srv.url, "r == 1", 1)
	file := filepath.Join(dir, "rules", "a.json")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	put := func(text string) {
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	put(strings.Replace(string(good), "vector(1)", "vector(2)", 1)) // its checksum is wrong
	require.Eventually(t, func() bool {
		_, metrics := get(t, srv.url+"/metrics")
		return strings.Contains(metrics, "\npromlake_ruler_load_failures_total ") && !strings.Contains(metrics, "\npromlake_ruler_load_failures_total 0\n")
	}, 2*time.Minute, 20*time.Millisecond)
	b.set(t, srv.url, "n", group(3))
	b.values(t, srv.url, "r == 3", 1)
	a.values(t, srv.url, fmt.Sprintf("timestamp(r) > %d and r == 1", time.Now().Unix()), 1)
	put(string(good))
	a.set(t, srv.url, "n", group(4))
	a.values(t, srv.url, "r == 4", 1)
	srv.end(t)
}

// TestTemplatesBeyondLimits: a rule whose template exceeds a limit fails alone, and visibly.
func TestTemplatesBeyondLimits(t *testing.T) {
	s := evaluating(t, "file://"+t.TempDir())
	s.Ruler.Templates.MaxSteps = 10_000
	srv := start(t, s)
	a, b := caller{tenant: "team-a"}, caller{tenant: "team-b"}
	group := "name: g\ninterval: 100ms\nrules:\n- {alert: Sound, expr: vector(1), annotations: {a: '{{ $value }}!'}}\n"
	a.set(t, srv.url, "n", group+"- {alert: Endless, expr: vector(2), annotations: {a: '{{ range 1000000000000 }}{{ end }}'}}\n")
	b.set(t, srv.url, "n", group)
	a.values(t, srv.url, `ALERTS{alertname="Sound"}`, 1)
	b.values(t, srv.url, `ALERTS{alertname="Sound"}`, 1)
	body := lines{}
	require.Eventually(t, func() bool {
		_, text := a.get(t, srv.url+"/api/v1/rules")
		body.b.Reset()
		_, _ = body.Write([]byte(text))
		return strings.Contains(text, "at one evaluation of a rule") && strings.Contains(text, `"health":"err"`)
	}, 2*time.Minute, 20*time.Millisecond, "%s", &body)
	_, alerts := a.get(t, srv.url+"/api/v1/alerts")
	require.Contains(t, alerts, `"a":"1!"`)
	a.values(t, srv.url, `ALERTS{alertname="Endless"}`, 0)
	_, metrics := get(t, srv.url+"/metrics")
	require.Regexp(t, `promlake_rule_templates_limited_total\{limit="template_steps"\} [1-9]`, metrics)
	srv.end(t)
}

// TestEndlessEvaluationsDelayNobody: an evaluation that does not end delays no change of another
// tenant. It ends when its group is gone, and when the process ends.
func TestEndlessEvaluationsDelayNobody(t *testing.T) {
	s := evaluating(t, "file://"+t.TempDir())
	s.Ruler.Templates.MaxSteps = math.MaxInt
	s.Process.ShutdownTimeout = 2 * time.Second
	srv := start(t, s)
	a, b := caller{tenant: "team-a"}, caller{tenant: "team-b"}
	begun := func(id string) {
		require.Eventually(t, func() bool {
			_, metrics := get(t, srv.url+"/metrics")
			return strings.Contains(metrics, fmt.Sprintf("promlake_prometheus_rule_group_iterations_total{tenant=%q} 1\n", id))
		}, 2*time.Minute, 20*time.Millisecond)
	}
	endless := "name: g\ninterval: 100ms\nrules:\n- {alert: A, expr: vector(1), annotations: {a: '{{ range 1000000000000000 }}{{ end }}'}}\n"
	a.set(t, srv.url, "n", endless)
	begun("team-a")
	b.set(t, srv.url, "n", sums)
	require.NoError(t, b.write(t, srv.url, "up"))
	b.values(t, srv.url, "sum", 1)
	a.set(t, srv.url, "n/g", "")
	a.set(t, srv.url, "n", "name: other\ninterval: 100ms\nrules: [{record: sound, expr: '1'}]\n")
	a.values(t, srv.url, "sound", 1)
	require.Eventually(t, func() bool {
		_, metrics := get(t, srv.url+"/metrics")
		return strings.Contains(metrics, "\npromlake_ruler_updating_tenants 0\n")
	}, 2*time.Minute, 20*time.Millisecond)
	caller{tenant: "team-c"}.set(t, srv.url, "n", endless)
	begun("team-c")
	srv.stop()
	select {
	case err := <-srv.done:
		require.ErrorContains(t, err, "end the evaluation of rules")
	case <-time.After(2 * time.Minute):
		t.Fatal("the process does not end")
	}
}
