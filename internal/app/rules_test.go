package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// alert is what an Alertmanager receives.
type alert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	GeneratorURL        string
}

// alertmanager records notifications.
type alertmanager struct {
	mu   sync.Mutex
	got  []alert
	addr string
}

func newAlertmanager(t *testing.T) *alertmanager {
	a := &alertmanager{}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	a.addr = strings.TrimPrefix(srv.URL, "http://")
	return a
}

func (a *alertmanager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var batch []alert
	if r.URL.Path != "/api/v2/alerts" || json.NewDecoder(r.Body).Decode(&batch) != nil {
		http.Error(w, "not a notification", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, batch...)
}

// received returns the notifications of an alert, oldest first.
func (a *alertmanager) received(name string) (out []alert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.got {
		if x.Labels["alertname"] == name {
			out = append(out, x)
		}
	}
	return out
}

// exampleRules have alerts that a scrape that fails, because the machine is busy, does not end.
const exampleRules = `
groups:
- name: recording
  rules:
  - {record: "job:v:sum", expr: "sum by (job) (v)", labels: {team: a}}
  - {record: "job:v:double", expr: "2 * job:v:sum"}
- name: alerting
  rules:
  - alert: High
    expr: last_over_time(v[1h]) > 10
    for: 1s
    keep_firing_for: 1s
    labels: {severity: page}
    annotations: {summary: "{{ $labels.instance }} has {{ $value }}"}
  - {alert: Limited, expr: "v", labels: {}}
  - {alert: Brief, expr: "last_over_time(v[1h]) > 10", for: 1h}
`

func TestRules(t *testing.T) {
	am := newAlertmanager(t)
	x := newTarget(t, "v 5\n")
	s, file := monitoring(t, fast+fmt.Sprintf(`
rule_files: ["rules*.yml"]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
scrape_configs: [{job_name: j, static_configs: [{targets: [%q]}]}]
`, am.addr, x.addr))
	rulesFile := filepath.Join(filepath.Dir(file), "rules.yml")
	require.NoError(t, os.WriteFile(rulesFile, []byte(exampleRules), 0o600))
	s.Prometheus.ResendDelay = 100 * time.Millisecond
	srv := start(t, s)

	got := srv.eventually(t, `job:v:double == 10`, 1)
	require.Equal(t, model.Metric{"__name__": "job:v:double", "job": "j", "team": "a"}, withName(got[0].Metric, "job:v:double"))
	// A rule sees the result of the rule before it, of the same evaluation.
	require.Eventually(t, func() bool {
		return len(query(t, srv.url, `timestamp(job:v:sum) == on() timestamp(job:v:double)`, time.Now()).(model.Vector)) == 1
	}, time.Minute, 20*time.Millisecond)

	x.set(http.StatusOK, "v 20\n")
	srv.eventually(t, `ALERTS{alertname="High",alertstate="firing",severity="page"} == 1`, 1)
	srv.eventually(t, `last_over_time(ALERTS{alertname="High",alertstate="pending"}[1h])`, 1) // for a second
	srv.eventually(t, `ALERTS{alertname="High",alertstate="pending"}`, 0)
	srv.eventually(t, `ALERTS_FOR_STATE{alertname="High"}`, 1)
	srv.eventually(t, `ALERTS{alertname="Brief",alertstate="pending"}`, 1)
	since := srv.eventually(t, `ALERTS_FOR_STATE{alertname="Brief"}`, 1)[0].Value
	require.Eventually(t, func() bool { return len(am.received("High")) > 0 }, time.Minute, 20*time.Millisecond)
	first := am.received("High")[0]
	require.Equal(t, map[string]string{"summary": x.addr + " has 20"}, first.Annotations)
	require.Equal(t, "page", first.Labels["severity"])
	require.Contains(t, first.GeneratorURL, "/graph?g0.expr=last_over_time%28v%5B1h%5D%29+%3E+10")
	link, err := url.Parse(first.GeneratorURL)
	require.NoError(t, err)
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Get(srv.url + link.RequestURI())
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "./#/explore?g0.expr=last_over_time%28v%5B1h%5D%29+%3E+10&g0.tab=1", resp.Header.Get("Location"))
	require.Contains(t, srv.data(t, "/api/v1/alertmanagers")["activeAlertmanagers"].([]any)[0].(map[string]any)["url"], am.addr)
	require.Len(t, srv.data(t, "/api/v1/rules")["groups"], 2)
	alerts, err := json.Marshal(srv.data(t, "/api/v1/alerts"))
	require.NoError(t, err)
	require.Contains(t, string(alerts), `"alertname":"High"`)

	spending, err := json.Marshal(srv.data(t, "/api/v1/status/spending")["sources"])
	require.NoError(t, err)
	require.Contains(t, string(spending), `"kind":"rule_group","name":"`+rulesFile+`;alerting"`)

	// A restart continues the time of an alert that is pending.
	srv.end(t)
	ended := time.Now().Unix()
	s.Prometheus.GracePeriod = time.Millisecond
	srv = start(t, s)
	require.Eventually(t, func() bool {
		v := query(t, srv.url, `ALERTS_FOR_STATE{alertname="Brief"}`, time.Now()).(model.Vector)
		return len(v) == 1 && v[0].Value <= since+1 && len(srv.data(t, "/api/v1/alerts")["alerts"].([]any)) > 1
	}, time.Minute, 20*time.Millisecond)
	srv.eventually(t, fmt.Sprintf(`timestamp(ALERTS{alertname=~"High|Brief"}) > %d and ALERTS{alertname=~"High|Brief"}`, ended+1), 2)
	srv.eventually(t, `ALERTS{alertname="High",alertstate="firing"}`, 1)

	// An alert keeps firing for a while, then it is resolved, and its series end.
	x.set(http.StatusOK, "v 5\n")
	srv.eventually(t, `count_over_time((v == 5 and on() ALERTS{alertname="High",alertstate="firing"})[10m:100ms])`, 1)
	srv.eventually(t, `ALERTS{alertname=~"High|Brief"}`, 0)
	require.Eventually(t, func() bool {
		all := am.received("High")
		return len(all) > 0 && !all[len(all)-1].EndsAt.After(time.Now())
	}, time.Minute, 20*time.Millisecond)

	// A rule that is removed leaves no series behind.
	require.NoError(t, os.WriteFile(rulesFile, []byte("groups: [{name: recording, rules: [{record: w, expr: v}]}]"), 0o600))
	resp, err = http.Post(srv.url+"/-/reload", "", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	srv.eventually(t, `w`, 1)
	srv.eventually(t, `{__name__=~"job:.*"}`, 0)
	// Rules that cannot be read change nothing.
	require.NoError(t, os.WriteFile(rulesFile, []byte("groups: [{name: g, rules: [{record: w, expr: 'sum('}]}]"), 0o600))
	resp, err = http.Post(srv.url+"/-/reload", "", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	require.Len(t, srv.data(t, "/api/v1/rules")["groups"], 1)
	srv.end(t)
}

func withName(m model.Metric, name model.LabelValue) model.Metric {
	m = m.Clone()
	m[model.MetricNameLabel] = name
	return m
}
