package lifetime

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// interval is the time between two scrapes, and between two evaluations of each group of rules.
const interval = 15 * time.Second

// config scrapes a target and reads the rules beside it.
const config = `
global: {scrape_interval: 15s, scrape_timeout: 10s, evaluation_interval: 15s}
rule_files: [rules.yml]
scrape_configs: [{job_name: j, static_configs: [{targets: [%q]}]}]
`

// rules read the last minutes, results of each other, and more than a head has. Their results are
// of many series each, of which those that come together have neighbouring places in the table.
const rules = `
groups:
- name: recorded
  rules:
  - {record: "job:c:rate5m", expr: "sum by (job) (rate(c_total[5m]))"}
  - {record: "v:max10m", expr: "max_over_time(v[10m])"}
  - {record: "v:twice", expr: "2 * v:max10m"}
- name: others
  rules:
  - {record: "v:avg1m", expr: "avg_over_time(v[1m])"}
  - {record: "v:count20m", expr: "count_over_time(v[20m])"}
- name: alerts
  rules:
  - {alert: Soon, expr: "alarm == 1", for: 1m}
  - {alert: Late, expr: "alarm == 1", for: 8m}
  - {alert: Often, expr: "v >= 0"}
`

// target is what is scraped: text that follows from the time.
type target struct {
	config string       // a file
	now    atomic.Int64 // s
	alarm  atomic.Bool
}

// newTarget returns a running target. Its server is not in a bubble.
func newTarget(t *testing.T) *target {
	x := &target{}
	srv := httptest.NewUnstartedServer(x)
	// The clock of a bubble stands still while it waits for a connection.
	srv.Config.SetKeepAlivesEnabled(false)
	srv.Start()
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	x.config = filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(x.config, fmt.Appendf(nil, config, srv.Listener.Addr().String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(rules), 0o600))
	return x
}

// run lets time pass.
func (x *target) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Second, time.Until(end)))
		x.now.Store(time.Now().Unix())
	}
}

// ServeHTTP answers with counters, gauges, a constant, and a series that comes and goes.
func (x *target) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	at := x.now.Load()
	var b strings.Builder
	for i := range int64(80) {
		fmt.Fprintf(&b, "c_total{i=\"%d\"} %d\nv{i=\"%d\"} %g\n", i, at*(i+1), i, float64(at*7919*(i+3)%1000)/10)
	}
	if at/120%2 == 0 {
		fmt.Fprintf(&b, "flap %d\n", at)
	}
	alarm := 0
	if x.alarm.Load() {
		alarm = 1
	}
	fmt.Fprintf(&b, "constant 1\nalarm %d\n", alarm)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write([]byte(b.String()))
}
