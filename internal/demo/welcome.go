package demo

import (
	"fmt"
	"strings"
)

// Example is a PromQL query whose result over the demo's data is instructive.
type Example struct {
	Title string
	Query string
}

// Examples returns the queries of the welcome.
func Examples() []Example {
	return []Example{
		{"Who reports", `up`},
		{"CPUs in use, by mode", `sum by (mode) (rate(node_cpu_seconds_total{mode!="idle"}[1m]))`},
		{"Memory in use, as a fraction", `1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes`},
	}
}

// welcome prints the URL of Promlake and commands that can be pasted into a shell.
func (f *Feeder) welcome() {
	var b strings.Builder
	with := ""
	if f.token != "" {
		with = ` -H "Authorization: Bearer $PROMLAKE_TOKEN"`
	}
	fmt.Fprintf(&b, "\nPromlake is running at %s and stores this machine's metrics every %s. Query it:\n", f.url, f.interval)
	for _, e := range Examples() {
		fmt.Fprintf(&b, "\n  # %s\n  curl -sG%s %s/api/v1/query --data-urlencode 'query=%s'\n", e.Title, with, f.url, e.Query)
	}
	fmt.Fprintf(&b, "\nAs a Prometheus data source: %s    As a remote_write target: %s/api/v1/write\n\n", f.url, f.url)
	if _, err := fmt.Fprint(f.out, b.String()); err != nil {
		f.logger.Warn("demo could not print its welcome", "err", err)
	}
}
