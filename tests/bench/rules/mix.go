package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/tests/bench/fleet"
)

// rule is a rule of Prometheus' rule files. Its label rule is its number, so that no two rules have
// results in common.
type rule struct {
	Record string            `json:"record,omitempty"`
	Alert  string            `json:"alert,omitempty"`
	Expr   string            `json:"expr"`
	For    string            `json:"for,omitempty"`
	Labels map[string]string `json:"labels"`

	results int    // series of results, the same at each evaluation; 0: not known
	reads   string // a selector of its series, whose samples are of one scrape; "": of several
	exact   bool   // its values do not depend on the moment of a scrape
}

// group is a rule group.
type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

const (
	// lag is the record of how old the last sample is that a rule sees.
	lag = "bench:lag_seconds"
	// modes is the number of a processor's modes in the captured scrapes.
	modes = 8
)

// kind is a form of rule for one host. Selectors in its expression have the place %[1]s for the
// matcher of the host.
type kind struct {
	record, alert, expr, reads string
	results                    int
	exact                      bool
}

var kinds = []kind{
	{
		record: "bench:cpu_seconds:rate5m", results: modes, reads: `node_cpu_seconds_total{%[1]s}`,
		expr: `sum by (instance, mode) (rate(node_cpu_seconds_total{%[1]s}[5m]))`,
	},
	{
		record: "bench:cpu_busy:ratio", results: 1, reads: `node_cpu_seconds_total{%[1]s}`,
		expr: `1 - sum by (instance) (rate(node_cpu_seconds_total{%[1]s,mode="idle"}[5m])) / sum by (instance) (rate(node_cpu_seconds_total{%[1]s}[5m]))`,
	},
	{
		record: "bench:memory_used:ratio", results: 1, reads: `node_memory_MemAvailable_bytes{%[1]s}`,
		expr: `1 - node_memory_MemAvailable_bytes{%[1]s} / node_memory_MemTotal_bytes{%[1]s}`,
	},
	{
		record: "bench:load1:avg10m", results: 1, reads: `node_load1{%[1]s}`,
		expr: `avg_over_time(node_load1{%[1]s}[10m])`,
	},
	{
		record: "bench:network_bytes:rate5m", results: 1, reads: `node_network_receive_bytes_total{%[1]s}`,
		expr: `sum by (instance) (rate(node_network_receive_bytes_total{%[1]s}[5m]) + rate(node_network_transmit_bytes_total{%[1]s}[5m]))`,
	},
	{
		record: "bench:disk_busy:max", results: 1, reads: `node_disk_io_time_seconds_total{%[1]s}`,
		expr: `max by (instance) (rate(node_disk_io_time_seconds_total{%[1]s}[5m]))`,
	},
	{
		record: "bench:cpus:count", results: 1, exact: true, reads: `node_cpu_seconds_total{%[1]s}`,
		expr: `count by (instance) (node_cpu_seconds_total{%[1]s,mode="idle"})`,
	},
	{
		alert: "DiskFull", reads: `node_filesystem_avail_bytes{%[1]s}`,
		expr: `node_filesystem_avail_bytes{%[1]s} / node_filesystem_size_bytes{%[1]s} < 0.15`,
	},
}

// needed are the metrics that rules read.
var needed = []string{
	"node_cpu_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes", "node_load1", "node_network_receive_bytes_total",
	"node_network_transmit_bytes_total", "node_disk_io_time_seconds_total", "node_filesystem_avail_bytes", "node_filesystem_size_bytes",
	"node_context_switches_total",
}

// smallestGroup has one rule of each form.
var smallestGroup = 2 + len(kinds)

// mix returns n rules in groups of size, over all hosts of a fleet in turn. The first rule of a
// group records the lag; the second reads a series, or in each tenth group all processors, of each
// host of a role; each further one is of one of the kinds and reads one host.
func mix(hosts *fleet.Fleet, n, size int) (groups []group) {
	total, narrow := hosts.Len()/hosts.PerHost(), 0
	for i := range n {
		g, place := i/size, i%size
		if place == 0 {
			groups = append(groups, group{Name: fmt.Sprintf("group_%d", g)})
		}
		var r rule
		switch own := hosts.Labels(g % total * hosts.PerHost()); place {
		case 0:
			r = kind{record: lag, results: 1, expr: `time() - timestamp(node_load1{%[1]s})`}.of(own.Get(model.InstanceLabel))
		case 1:
			r = wide(own.Get("role"), g%10 == 0)
		default:
			host := narrow / len(kinds) % total
			r = kinds[narrow%len(kinds)].of(hosts.Labels(host * hosts.PerHost()).Get(model.InstanceLabel))
			narrow++
		}
		r.Labels = map[string]string{"rule": strconv.Itoa(i)}
		groups[g].Rules = append(groups[g].Rules, r)
	}
	return groups
}

// of returns the rule of a kind for a host.
func (k kind) of(instance string) rule {
	matcher := fmt.Sprintf("%s=%q", model.InstanceLabel, instance)
	r := rule{Record: k.record, Alert: k.alert, Expr: fmt.Sprintf(k.expr, matcher), results: k.results, exact: k.exact}
	if k.reads != "" {
		r.reads = fmt.Sprintf(k.reads, matcher)
	}
	if r.Alert != "" {
		r.For = "5m"
	}
	return r
}

// wide returns a rule over all hosts of a role.
func wide(role string, cpus bool) rule {
	if cpus {
		return rule{Record: "bench:role_cpu_seconds:rate5m", Expr: fmt.Sprintf(`sum by (role, mode) (rate(node_cpu_seconds_total{role=%q}[5m]))`, role), results: modes}
	}
	return rule{Record: "bench:role_context_switches:rate5m", Expr: fmt.Sprintf(`sum by (role) (rate(node_context_switches_total{role=%q}[5m]))`, role), results: 1}
}

// job is the name of the scrape job.
const job = "node_exporter"

// files returns the configuration and the rules for both servers. JSON is YAML.
func files(hosts *fleet.Fleet, groups []group, addr string, scrape, evaluation time.Duration) (map[string]string, error) {
	type static struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	var statics []static
	for host := range hosts.Len() / hosts.PerHost() {
		own := map[string]string{model.MetricsPathLabel: path(host)}
		all := hosts.Labels(host * hosts.PerHost())
		for _, name := range hostLabels {
			own[name] = all.Get(name)
		}
		statics = append(statics, static{[]string{addr}, own})
	}
	config, err := json.Marshal(map[string]any{
		"global": map[string]string{
			"scrape_interval": model.Duration(scrape).String(), "scrape_timeout": model.Duration(min(scrape, 10*time.Second)).String(),
			"evaluation_interval": model.Duration(evaluation).String(),
		},
		"rule_files":     []string{rulesName},
		"scrape_configs": []any{map[string]any{"job_name": job, "static_configs": statics}},
	})
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	rules, err := json.Marshal(map[string]any{"groups": slices.Concat([]group{}, groups)})
	if err != nil {
		return nil, fmt.Errorf("write rules: %w", err)
	}
	return map[string]string{configName: string(config), rulesName: string(rules)}, nil
}

// Names of the files.
const (
	configName = "prometheus.yml"
	rulesName  = "rules.yml"
)
