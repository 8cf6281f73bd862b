package seeds

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/table"
)

// taken are the first samples of a series.
type taken struct {
	labels map[string]string
	values []float64
}

// take returns the first n samples of all series, and their hash with the labels. The labels are in
// order, and no two series have the same.
func take(t *testing.T, set *query.Set, n int) (all []taken, hash uint64) {
	t.Helper()
	h, bits := fnv.New64a(), []byte{}
	seen := map[string]bool{}
	set.Series(func(labels []prompb.Label, next func() float64) {
		one := taken{labels: map[string]string{}}
		for i, l := range labels {
			require.True(t, i == 0 || labels[i-1].Name < l.Name, "%v", labels)
			one.labels[l.Name] = l.Value
			fmt.Fprintf(h, "%s=%q,", l.Name, l.Value)
		}
		id := fmt.Sprint(labels)
		require.False(t, seen[id], id)
		seen[id] = true
		for range n {
			v := next()
			one.values = append(one.values, v)
			bits = binary.LittleEndian.AppendUint64(bits[:0], math.Float64bits(v))
			_, _ = h.Write(bits) // it does not fail
		}
		all = append(all, one)
	})
	return all, h.Sum64()
}

// parsed checks that upstream's parser accepts all queries, and that each lies within the data as
// far as there is room.
func parsed(t *testing.T, set *query.Set) (texts map[string]string) {
	t.Helper()
	texts = map[string]string{}
	for _, q := range set.Questions {
		all := q.Variants
		if len(all) == 0 {
			all = []query.Question{q}
		}
		for _, v := range all {
			_, err := parser.NewParser(parser.Options{}).ParseExpr(v.Text)
			require.NoError(t, err, v.Text)
			require.False(t, v.Start.Before(set.Begin), v.Text)
			require.False(t, v.End.After(set.End()), v.Text)
		}
		require.NotContains(t, texts, q.Name)
		texts[q.Name] = all[0].Text
	}
	return texts
}

// TestCPUOnly: each host has ten metrics with the tags of TSBS, whose values are whole numbers from
// 0 to 100 that change by a normal distribution.
func TestCPUOnly(t *testing.T) {
	set := CPUOnly(100, 24*time.Hour)
	require.Equal(t, "TSBS cpu-only, 100 hosts × 8,640 samples", set.Name)
	all, hash := take(t, set, 100)
	require.Len(t, all, 1000)
	var sum, squares float64
	begins, values := map[bool]int{}, map[string]map[string]bool{}
	for _, s := range all {
		require.Len(t, s.labels, 11)
		require.True(t, strings.HasPrefix(s.labels["__name__"], "cpu_usage_"))
		require.True(t, strings.HasPrefix(s.labels["datacenter"], s.labels["region"]))
		for name, value := range s.labels {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value] = true
		}
		begins[s.values[0] < 50]++
		for i, v := range s.values {
			if v < 0 || v > 100 || v != math.Trunc(v) {
				t.Fatal("unexpected value", v)
			}
			if i > 0 {
				d := v - s.values[i-1]
				sum, squares = sum+d, squares+d*d
			}
		}
	}
	require.InDelta(t, 500, begins[true], 60, "they begin anywhere")
	steps := float64(1000 * 99)
	require.InDelta(t, 0, sum/steps, 0.02)
	require.InDelta(t, 1+1.0/6, squares/steps, 0.15, "a step, and the fractions that are left out before and after it")
	for name, n := range map[string]int{"__name__": 10, "hostname": 100, "region": 9, "os": 3, "arch": 2, "team": 4, "service": 20, "service_version": 2, "service_environment": 3} {
		require.Len(t, values[name], n, name)
	}
	_, again := take(t, CPUOnly(100, time.Hour), 100)
	require.Equal(t, hash, again, "every run generates the same")
	require.Equal(t, "29d748cca761d983", fmt.Sprintf("%x", hash))
}

func TestCPUOnlyQueries(t *testing.T) {
	texts := parsed(t, CPUOnly(100, 24*time.Hour))
	require.Len(t, texts, 15)
	for name, pattern := range map[string]string{
		"single-groupby-1-1-1":  `^max\(max_over_time\(cpu_usage_user\{hostname='host_\d+'\}\[1m\]\)\) by \(__name__\)$`,
		"double-groupby-1":      `^avg\(avg_over_time\(cpu_usage_user\{\}\[1h\]\)\) by \(__name__, hostname\)$`,
		"cpu-max-all-1":         `max_over_time\(cpu_usage_guest_nice\{hostname='host_\d+'\}\[1h\]\)\) by \(__name__\), 'field', 'usage_guest_nice', '', ''\)$`,
		"high-cpu-1":            `^\{__name__=~'cpu_usage_\.\*', hostname='(host_\d+)'\} and on \(hostname\) cpu_usage_user\{hostname='host_\d+'\} > 90$`,
		"lastpoint":             `\[1d\]`,
		"groupby-orderby-limit": `^max\(max_over_time\(cpu_usage_user\{\}\[1m\]\)\)$`,
	} {
		require.Regexp(t, pattern, texts[name])
	}
	for name, n := range map[string]int{"single-groupby-1-8-1": 1, "single-groupby-5-8-1": 5, "double-groupby-5": 5, "double-groupby-all": 10, "cpu-max-all-8": 10} {
		require.Equal(t, n, strings.Count(texts[name], "_over_time"), name)
		require.Equal(t, n, 1+strings.Count(texts[name], " or "), name)
		if strings.Contains(name, "-8") {
			require.Equal(t, 8*n, n+strings.Count(texts[name], "|"), name)
		}
	}
	require.Len(t, CPUOnly(8, 20*time.Minute, "double-groupby-1").Questions, 1)
}

// TestDevops: the measurements have the fields of TSBS, and those of one host belong together.
func TestDevops(t *testing.T) {
	set := Devops(2000, 120)
	require.Equal(t, "TSBS devops, 20 hosts × 120 samples", set.Name)
	all, hash := take(t, set, 60)
	require.Len(t, all, 20*101)
	fields, one := map[string]int{}, map[string]taken{}
	means := map[string]float64{} // of the steps of all hosts
	for _, s := range all {
		name := s.labels["__name__"]
		measurement, _, _ := strings.Cut(name, "_")
		if s.labels["hostname"] == "host_7" {
			one[name] = s
			fields[measurement]++
			require.Len(t, s.labels, 11+map[string]int{"diskio": 1, "disk": 2, "net": 1, "nginx": 2, "redis": 2}[measurement])
		}
		means[name] += (s.values[10] - s.values[0]) / 10 / 20
	}
	require.Equal(t, map[string]int{"cpu": 10, "diskio": 7, "disk": 7, "kernel": 6, "mem": 9, "net": 8, "nginx": 7, "postgresl": 16, "redis": 31}, fields)
	for name, mean := range map[string]float64{
		"diskio_reads": 50, "diskio_write_bytes": 100, "net_err_in": 5, "net_bytes_recv": 50, "nginx_requests": 5, "nginx_waiting": 5, "kernel_interrupts": 5,
		"disk_free": 50, "postgresl_temp_bytes": 1024, "redis_expired_keys": 50, "redis_instantaneous_input_kbps": 1, "redis_uptime_in_seconds": 10, "cpu_usage_idle": 0,
	} {
		require.InDelta(t, mean, means[name], 0.3, name)
	}
	for i := range 60 {
		at := func(name string) float64 { return one[name].values[i] }
		require.Equal(t, float64(1<<40), at("disk_free")+at("disk_used"))
		require.Equal(t, at("disk_inodes_total"), at("disk_inodes_free")+at("disk_inodes_used"))
		require.Equal(t, at("mem_total"), at("mem_used")+at("mem_available"))
		require.Equal(t, 100*(at("mem_used")/at("mem_total")), at("mem_used_percent"))
		require.LessOrEqual(t, at("redis_mem_fragmentation_ratio"), 100.0)
	}
	require.Equal(t, one["disk_free"].labels["path"], one["disk_used"].labels["path"])
	require.Equal(t, one["cpu_usage_user"].values, func() []float64 {
		cpu, _ := take(t, CPUOnly(8, time.Hour), 60)
		return cpu[70].values
	}(), "as in cpu-only")
	require.Equal(t, "f9187faf79d5f443", fmt.Sprintf("%x", hash))
}

// TestTStorage: it has the data of cpu-only, and a hundred queries of each scenario.
func TestTStorage(t *testing.T) {
	set := TStorage(100, 24*time.Hour)
	require.Equal(t, CPUOnly(100, 24*time.Hour).Name, set.Name)
	texts := parsed(t, set)
	require.Regexp(t, `^cpu_usage_\w+\{hostname='host_\d+'\}\[12h\]$`, texts["TStorage, one series raw"])
	require.Regexp(t, `^\{__name__=~'cpu_\.\*', hostname='host_\d+'\}\[12h\]$`, texts["TStorage, ten series of a host raw"])
	require.Equal(t, 10, strings.Count(texts["TStorage, hourly means of all series"], "avg_over_time("))
	for i, q := range set.Questions {
		require.Len(t, q.Variants, 100)
		require.True(t, q.Each)
		for _, v := range q.Variants {
			require.Equal(t, i < 2, v.Start.Equal(v.End), "an instant query: samples as they are")
			require.False(t, v.End.Add(-12*time.Hour).Before(set.Begin))
		}
	}
}

// TestBilly: readings of two decimals lie above a least one of each day by an exponential
// distribution, and one is the needle.
func TestBilly(t *testing.T) {
	set, read := billy(10, 3)
	require.Equal(t, "Billy, 10 sensors × 4,320 samples", set.Name)
	all, hash := take(t, set, set.Samples)
	require.Len(t, all, 10)
	needles, sum, least := 0, 0.0, 0.0
	for _, s := range all {
		require.Equal(t, "temperature", s.labels["__name__"])
		low := math.Inf(1)
		for i, v := range s.values {
			if v == needle {
				needles++
			} else if v < 68 || v > needleFrom || math.Round(v*100)/100 != v {
				t.Fatal("unexpected reading", v)
			} else {
				sum += v
			}
			if low = min(low, v); i%perDay == perDay-1 {
				least, low = least+low/30, math.Inf(1)
			}
		}
	}
	require.Equal(t, 1, needles)
	require.InDelta(t, 68+1.0/3, least, 0.2)
	require.InDelta(t, 68+1.0/3+2.0/3, sum/(10*4320-1), 0.2)
	texts := parsed(t, set)
	require.Equal(t, map[string]float64{
		allDays: 43200, "Billy, a whole day: max(max_over_time(temperature[1d]))": 14400, "Billy, a day off the grid: max(max_over_time(temperature[1d]))": 14400,
		"Billy, a needle: max_over_time(temperature[90d]) > 100": 43200, "Billy, a quantile of a day off the grid: max(quantile_over_time(0.99, temperature[1d]))": 14400,
	}, read)
	require.Len(t, texts, len(read))
	require.Equal(t, "1634c42edaacbea3", fmt.Sprintf("%x", hash))
}

func TestRates(t *testing.T) {
	got := rates("Billy", []table.Comparison{
		{Name: "Billy: load and compaction", Unit: disk.CPUUnit, Promlake: 0.5, Peer: 2}, {Name: "Billy: load", Unit: disk.CPUUnit, Promlake: 0.5},
		{Name: allDays, Unit: "CPU ms", Promlake: 10, Peer: 20}, {Name: allDays, Unit: "ms", Promlake: 10}, {Name: "one", Unit: "CPU ms", Promlake: 10},
	}, map[string]float64{allDays: 4e6, "one": 1e6})
	require.Equal(t, []rate{{"Billy: load and compaction", 2, 0.5, 2.0625}, {allDays, 400, 200, 11.875}, {"one", 100, 0, 0}}, got)
	require.Equal(t, []string{"one", "100", "–", "–"}, rateRows(got)[3])
	require.Len(t, report{Rates: got}.tables(), 2)
}

func TestChosen(t *testing.T) {
	f := Flags{Scale: "small"}
	names := func(rows ...string) (out []string) {
		f.Rows = rows
		for _, b := range f.chosen(f.benchmarks()) {
			out = append(out, fmt.Sprintf("%s: %d", b.name, len(b.set.Questions)))
		}
		return out
	}
	require.Len(t, names(), len(f.benchmarks()))
	require.Equal(t, []string{"TSBS cpu-only: 1"}, names("DOUBLE-groupby-1"))
	f.Large = true
	require.Equal(t, []string{"TSBS devops, 1,000 series: 0", "TSBS devops, 2,000 series: 0", "TSBS devops, 20,000 series: 0"}, names("devops"))
	require.Empty(t, names("no such row"))
	require.ErrorContains(t, f.Run(t.Context()), "no benchmark or query contains")
	f.Only = []string{"victoria-metrics"}
	require.ErrorContains(t, f.Run(t.Context()), "every row is one of promlake")
	require.Equal(t, "tsbs-cpu-only-10-hosts-4-680-samples", folder("TSBS cpu-only, 10 hosts × 4,680 samples"))
	for scale := range scales {
		f.Scale = scale
		for _, b := range f.benchmarks() {
			parsed(t, b.set)
		}
	}
}
