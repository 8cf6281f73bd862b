package all

import (
	"fmt"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/table"
)

// hostGoals are what is wanted of the data set hosts.
func hostGoals() []goal {
	const one = `node_cpu_seconds_total{instance="host_3:9100",cpu="0",mode="user"}`
	return []goal{
		atMost("load and compaction", disk.CPUUnit, 0.6),
		atMost(`sum by (mode) (rate(node_cpu_seconds_total[5m]))`, "ms", 0.7),
		atMost(`sum(max_over_time(node_load1[5m]))`, "ms", 0.9),
		atMost(`sum(deriv(node_load1[15m]))`, "ms", 0.9),
		atMost(`max_over_time(sum(rate(node_cpu_seconds_total{mode="idle"}[5m]))[30m:1m])`, "ms", 0.9),
		atMost(`1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))`, "ms", 0.8),
		atMost(`node_memory_MemAvailable_bytes / on (instance) node_memory_MemTotal_bytes`, "ms", 0.9),
		atMost(`topk(5, avg_over_time(node_cpu_seconds_total{mode="user"}[1h]))`, "ms", 0.7),
		atMost(`sum by (cpu) (irate(node_cpu_seconds_total{mode=~"user|system|iowait"}[2m]))`, "ms", 0.8),
		atMost(one, "ms", 1),
		atMost(`rate(`+one+`[5m])`, "ms", 1),
		atMost(`absent(node_cpu_seconds_total{instance="host_none:9100"})`, "ms", 1),
	}
}

// mixedGoals are what is wanted of the data set mixed.
func mixedGoals(q query.Flags) []goal {
	const (
		few       = `sum by (g) (rate(m{dc="dc3"}[5m]))`
		quantile  = `histogram_quantile(0.99, sum by (le) (rate(h_bucket[5m])))`
		one       = `m{instance="host-000:9100",n="7"}`
		instant   = `sum by (g) (rate(m[5m])), instant`
		dashboard = "dashboard mix, 8 clients"
	)
	long := fmt.Sprintf(`max(max_over_time(l[%s])), instant`, model.Duration(q.History))
	return []goal{
		atMost("data of the mixed queries, all of the disk", "MB", 0.9),
		atMost(dashboard, "CPU ms per query", 1), atMost(dashboard, "ms from answer to answer", 1),
		atMost(few, "ms", 0.7), atMost(quantile, "ms", 0.7), atMost(instant, "ms", 0.7),
		atMost(`sum by (g) (rate(m[5m]))`, "ms", 0.45), atMost(`sum(max_over_time(m[5m]))`, "ms", 0.45),
		atMost(few+", cold", "ms", 1), atMost(quantile+", cold", "ms", 1), atMost(long+", cold", "ms", 1), atMost(one+", cold", "ms", 1),
	}
}

// liveGoals are what is wanted of the live hour, whose questions are known without a run.
func liveGoals(l query.Live) []goal {
	goals := []goal{atMost("dashboard mix, 8 clients", "CPU ms per query", 0.8), atMost("dashboard mix, 8 clients", "ms from answer to answer", 0.8), within("memory", "MB", 75)}
	for _, name := range l.Names() {
		goals = append(goals, atMost(name, "ms", 0.9))
	}
	return goals
}

// tsbsGoals are what is wanted of the data set tsbs.
func tsbsGoals() []goal {
	return []goal{
		atMost("load and compaction", disk.CPUUnit, 0.6), atMost("live with rollups", "bytes per sample", 0.9),
		atMost("single-groupby-1-1-1", "ms", 1), atMost("single-groupby-1-8-1", "ms", 1), atMost("double-groupby-1", "ms", 1),
	}
}

// growthGoals want the costs of samples and queries to be the same for every number of series: at
// least nine tenths of the efficiency are left, and eight tenths at five million.
func growthGoals(series []int) (out []goal) {
	count := func(n int) string { return table.Count(int64(max(1, n/perHost) * perHost)) }
	for _, n := range series[1:] {
		left := 0.9
		if n >= 5_000_000 {
			left = 0.8
		}
		for _, what := range []string{"samples", "first queries", "repeated queries"} {
			out = append(out, within(count(n)+" series: "+what, "times that of "+count(series[0])+" series", 1/left))
		}
	}
	return out
}
