package rulefn_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// receiver returns the URL of an Alertmanager, and the labels of the alerts in each request to it.
func receiver(t *testing.T) (url string, got func() [][]map[string]string) {
	t.Helper()
	requests := make(chan []map[string]string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var alerts []struct{ Labels map[string]string }
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &alerts)
		}
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		var all []map[string]string
		for _, a := range alerts {
			all = append(all, a.Labels)
		}
		requests <- all
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (out [][]map[string]string) {
		for len(requests) > 0 {
			out = append(out, <-requests)
		}
		return out
	}
}

// TestRelabeling: notifications are relabeled when they have the external labels and the tenant.
// Those that are dropped are not sent, and wait for nobody; the samples of their alerts stay.
func TestRelabeling(t *testing.T) {
	url, got := receiver(t)
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.set.Notify.Alertmanagers, w.set.Notify.ExternalLabels = url, "cluster=prod,severity=none"
	w.set.Notify.RelabelConfigs = `
- {source_labels: [cluster, severity], regex: prod;info, action: drop}
- {source_labels: [tenant, cluster], separator: "/", target_label: from, replacement: "at $1"}
- {regex: cluster, action: labeldrop}
- {source_labels: [severity], target_label: severity, action: uppercase}
`
	sender, err := w.set.Sender()
	require.NoError(t, err)
	w.sender = sender
	rule := func(name, severity string) rulestore.Rule {
		return rulestore.Rule{Alert: name, Expr: "vector(1)", Labels: map[string]string{"severity": severity}}
	}
	w.rules(rulestore.Group{Name: "g", Rules: []rulestore.Rule{rule("A", "info"), rule("B", "page"), rule("C", "")}})
	require.NoError(t, w.function().Tick(t.Context(), minute(0)))
	from := "at " + tenant + "/prod"
	require.Equal(t, [][]map[string]string{{
		{"alertname": "B", "severity": "PAGE", "tenant": tenant, "from": from},
		{"alertname": "C", "severity": "NONE", "tenant": tenant, "from": from},
	}}, got())
	samples, _ := w.delivered()
	require.Len(t, samples, 6)
	require.Contains(t, samples, labels.FromStrings("__name__", "ALERTS", "alertname", "A", "alertstate", "firing", "severity", "info").String()+"@"+evaluatedAt(t, w))

	w.rules(rulestore.Group{Name: "g", Rules: []rulestore.Rule{rule("A", "info")}})
	for i := range 3 {
		require.NoError(t, w.function().Tick(t.Context(), minute(30+i)))
	}
	require.Empty(t, got(), "a request without alerts")
}

// evaluatedAt returns the milliseconds of the last evaluation of the group g.
func evaluatedAt(t *testing.T, w *world) string {
	t.Helper()
	s, _, err := rulestate.Read(t.Context(), w.Store, tenant, "n", "g")
	require.NoError(t, err)
	b, err := json.Marshal(s.Evaluated.UnixMilli())
	require.NoError(t, err)
	return string(b)
}

// TestRelabelingIsChecked: a mistake in the setting is an error that shows where it is.
func TestRelabelingIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"":   "",
		"[]": "",
		"- {source_labels: [a], regex: b, action: drop}":   "",
		`[{"source_labels": ["a"], "target_label": "b"}]`:  "",
		"- {source_labels: [a], action: dorp}":             `unknown relabel action "dorp"`,
		"- {source_labels: [a], regex: '(', action: drop}": "missing closing )",
		"- {source_label: [a], action: drop}":              "field source_label not found",
		"- {source_labels: [a]}":                           "entry 1: relabel configuration for replace action requires 'target_label' value",
		"- {source_labels: [a], action: drop}\n-":          "entry 2: it is empty",
		"alert_relabel_configs: [{action: drop}]":          "want YAML as in Prometheus' alert_relabel_configs: yaml:",
		"{": "want YAML as in Prometheus' alert_relabel_configs: yaml:",
	} {
		s := settings.Default[rulefn.Settings]()
		s.Notify.RelabelConfigs = text
		err := s.Validate()
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, "ruler.alert-relabel-configs: ", text)
		require.ErrorContains(t, err, want, text)
	}
}
