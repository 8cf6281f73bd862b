package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/answer"
	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/server"
)

func fleetOf(t *testing.T, n, series int) (*fleet.Fleet, *capture.Capture) {
	t.Helper()
	c, err := capture.Open("")
	require.NoError(t, err)
	c, err = sized(c, series)
	require.NoError(t, err)
	f, err := fleet.New(c, n)
	require.NoError(t, err)
	return f, c
}

func TestSized(t *testing.T) {
	for _, n := range []int{50, 500, 507, 1500} {
		f, c := fleetOf(t, 1, n)
		require.Equal(t, n, f.Len())
		series, names := map[string]int{}, map[string]int{}
		for _, s := range c.Series {
			series[s.Labels.String()]++
			names[s.Labels.Get(model.MetricNameLabel)]++
		}
		require.Len(t, series, n, "no series is there twice")
		for _, name := range needed {
			require.Positive(t, names[name], name)
		}
		require.Equal(t, 2*modes, names["node_cpu_seconds_total"])
	}
	c, err := capture.Open("")
	require.NoError(t, err)
	_, err = sized(c, 5)
	require.ErrorContains(t, err, "5 series of a target: the rules read")
}

// TestMix checks the rules by upstream's parser.
func TestMix(t *testing.T) {
	hosts, _ := fleetOf(t, 7, 500)
	groups := mix(hosts, 1205, 100)
	require.Len(t, groups, 13)
	require.Len(t, groups[12].Rules, 5)
	all, err := files(hosts, groups, "127.0.0.1:1", 15*time.Second, time.Minute)
	require.NoError(t, err)
	parsed, errs := rulefmt.Parse([]byte(all[rulesName]), false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	require.Empty(t, errs)
	require.Len(t, parsed.Groups, 13)
	forms, hostsRead, results := map[string]int{}, map[string]bool{}, 0
	for _, g := range groups {
		for _, r := range g.Rules {
			forms[r.Record+r.Alert]++
			hostsRead[r.reads] = true
			results += r.results
		}
	}
	require.Len(t, forms, len(kinds)+3)
	require.Equal(t, 13, forms[lag])
	require.Equal(t, 2, forms["bench:role_cpu_seconds:rate5m"])
	for host := range 7 {
		require.Contains(t, hostsRead, fmt.Sprintf(`node_load1{instance="host_%d:9100"}`, host))
	}
	require.Positive(t, results)
	var config struct {
		Scrapes []struct {
			Statics []struct{ Labels map[string]string } `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	require.NoError(t, json.Unmarshal([]byte(all[configName]), &config))
	require.Equal(t, map[string]string{"__metrics_path__": "/targets/6", "env": "prod", "host_number": "6", "instance": "host_6:9100", "role": "database"},
		config.Scrapes[0].Statics[6].Labels)
}

// TestPages: a target serves all series of its host, in Prometheus' format, and the next values at
// each scrape.
func TestPages(t *testing.T) {
	hosts, c := fleetOf(t, 3, 600)
	s, err := serve(hosts, c, 15*time.Second)
	require.NoError(t, err)
	values := make([]float64, hosts.PerHost())
	for round := range 3 {
		resp, err := http.Get("http://" + s.addr + path(2))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		p := expfmt.NewTextParser(model.UTF8Validation)
		page, err := p.TextToMetricFamilies(bytes.NewReader(body))
		require.NoError(t, err)
		n := 0
		for _, f := range page {
			n += len(f.GetMetric())
		}
		require.Equal(t, 600, n)
		hosts.Values(values, 2*hosts.PerHost(), round, 0)
		for i, series := range c.Series {
			if series.Labels.Get(model.MetricNameLabel) == "node_context_switches_total" {
				require.Equal(t, values[i], page["node_context_switches_total"].GetMetric()[0].GetCounter().GetValue())
			}
		}
	}
	for _, bad := range []string{"/targets/3", "/targets/-1", "/targets/x", "/"} {
		resp, err := http.Get("http://" + s.addr + bad)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusNotFound, resp.StatusCode, bad)
	}
	made, _ := s.count(time.Now())
	require.Equal(t, 3, made)
	require.NoError(t, s.close())
}

func TestMissedScrapes(t *testing.T) {
	begin := time.Unix(1000, 0)
	s := &targets{interval: 10 * time.Second, seen: make([]seen, 2)}
	s.begin(begin)
	for _, after := range []time.Duration{7 * time.Second, 17 * time.Second, 27*time.Second + 4*time.Second, 57 * time.Second} {
		s.note(0, begin.Add(after))
	}
	made, missed := s.count(begin.Add(62 * time.Second))
	require.Equal(t, 4, made)
	require.Equal(t, 2+5, missed, "two between 31 s and 57 s; the other target was never scraped")
}

// TestRefusedFlags: no server is started for flags that leave nothing to measure.
func TestRefusedFlags(t *testing.T) {
	for want, change := range map[string]func(*Flags){
		"intervals of 0s and 1m0s":    func(f *Flags) { f.Scrape = 0 },
		"duration 1m0s: want at lea":  func(f *Flags) { f.Duration = time.Minute },
		"-1 rules":                    func(f *Flags) { f.Rules = -1 },
		"groups of 9 rules: want at ": func(f *Flags) { f.GroupSize = 9 },
	} {
		f := flags()
		change(&f)
		_, err := f.measure(t.Context())
		require.ErrorContains(t, err, want)
	}
	f := flags()
	f.ServerBin = filepath.Join(t.TempDir(), "none")
	_, err := f.measure(t.Context())
	require.ErrorIs(t, err, server.ErrNone)
}

func flags() Flags {
	return Flags{Targets: 2, Series: 50, Rules: 20, GroupSize: 20, Scrape: 15 * time.Second, Evaluation: time.Minute, Duration: 5 * time.Minute}
}

func TestConfigured(t *testing.T) {
	hosts, c := fleetOf(t, 2, 50)
	f := flags()
	f.PromlakeArgs = []string{"--further"}
	w := &work{Flags: &f, capture: c, hosts: hosts, groups: mix(hosts, 20, 20)}
	for _, spec := range server.Specs("promlake", "peers") {
		got, err := w.configured(spec, "127.0.0.1:1")
		require.NoError(t, err)
		args := strings.Join(got.Args("addr", "/dir"), " ")
		switch spec.Name {
		case server.Promlake:
			require.Contains(t, args, "--config.file /dir/prometheus.yml --further")
		case server.Prometheus:
			require.Contains(t, args, "--config.file=/dir/prometheus.yml")
			require.NotContains(t, args, "--further")
		}
		require.Contains(t, got.Files[configName], `"scrape_interval":"15s"`)
		require.NotEqual(t, got.Files[configName], spec.Files[configName], "the other one is left as it was")
	}
}

// The test binary is also the servers under test: fake <address> <answers as JSON by query>.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "fake" {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[2], fake(os.Args[3])))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// fake answers each query by the value of the first text that it contains, and has no series for
// others.
func fake(answers string) http.Handler {
	var by map[string]string
	if err := json.Unmarshal([]byte(answers), &by); err != nil {
		panic(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = io.WriteString(w, by["/metrics"])
			return
		}
		v, ok := by[r.FormValue("query")]
		if !ok {
			v = `[]`
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"result":%s}}`, v)
	})
}

func started(t *testing.T, answers map[string]string) *server.Process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(answers)
	require.NoError(t, err)
	p, err := server.Start(t.Context(), server.Spec{
		Name: "fake", Binary: self, ReadyPath: "/ready", Args: func(addr, _ string) []string { return []string{"fake", addr, string(text)} },
	}, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

func TestCount(t *testing.T) {
	p := started(t, map[string]string{"/metrics": `# TYPE prometheus_rule_group_duration_seconds summary
prometheus_rule_group_duration_seconds_sum 3
prometheus_rule_group_duration_seconds_count 6
# TYPE prometheus_rule_evaluations_total counter
prometheus_rule_evaluations_total{rule_group="a"} 7
prometheus_rule_evaluations_total{rule_group="b"} 8
# TYPE prometheus_rule_evaluation_failures_total counter
prometheus_rule_evaluation_failures_total{rule_group="b"} 2
# TYPE prometheus_rule_group_iterations_missed_total counter
prometheus_rule_group_iterations_missed_total{rule_group="b"} 1
# TYPE promlake_queue_stored_samples_total counter
promlake_queue_stored_samples_total 1000
# TYPE promlake_queue_dropped_samples_total counter
promlake_queue_dropped_samples_total 5
# TYPE promlake_queue_refused_appends_total counter
promlake_queue_refused_appends_total 0
`})
	r := &result{Server: server.Promlake}
	require.NoError(t, r.count(t.Context(), p))
	require.Equal(t, []float64{15, 2, 1, 1000, 0.5}, []float64{r.Evaluations, r.Failed, r.Missed, r.Samples, r.GroupSeconds})
	require.Equal(t, []string{"2 evaluations failed", "promlake_queue_dropped_samples_total is 5"}, r.Errors)
	require.ErrorContains(t, (&result{Server: server.Prometheus}).count(t.Context(), p), "prometheus_tsdb_head_samples_appended_total is not among them")
}

func point(seconds, value float64) string {
	return fmt.Sprintf(`[{"metric":{},"values":[[%v,"%v"]]}]`, seconds, value)
}

// TestScraped: a run in which scrapes failed or are missing is no result.
func TestScraped(t *testing.T) {
	hosts, c := fleetOf(t, 2, 50)
	f := flags()
	w := &work{Flags: &f, capture: c, hosts: hosts}
	examine := func(stored, ok, series float64, r *result) []string {
		answers := map[string]string{
			`sum(count_over_time(up{job="node_exporter"}[70s]))`: point(1, stored),
			`sum(sum_over_time(up{job="node_exporter"}[70s]))`:   point(1, ok),
		}
		for host := range 2 {
			answers[fmt.Sprintf(`count({job="node_exporter",instance="host_%d:9100",rule=""})`, host)] = point(1, series)
		}
		e := &examiner{ctx: t.Context(), server: started(t, answers), at: time.Unix(100, 0)}
		w.scraped(e, r)
		require.NoError(t, e.err)
		return r.Errors
	}
	fine := result{Seconds: 60, Scrapes: 10, Samples: 550}
	for want, bad := range map[string][]string{
		"":                                    examine(9, 9, 55, new(fine)),
		"1 scrapes failed":                    examine(10, 9, 55, new(fine)),
		"7 scrapes are stored of 10 that wer": examine(7, 7, 55, new(fine)),
		"has 54 series, want 55":              examine(10, 10, 54, new(fine)),
		"300 samples were appended in 10 scr": examine(10, 10, 55, &result{Seconds: 60, Scrapes: 10, Samples: 300}),
	} {
		if want == "" {
			require.Empty(t, bad)
		} else {
			require.ErrorContains(t, fmt.Errorf("%v", bad), want)
		}
	}
}

// TestSame: a recorded result is compared with the answer to its expression at its own time.
func TestSame(t *testing.T) {
	r := rule{Record: "x", Expr: "sum(y)", reads: "y", Labels: map[string]string{"rule": "3"}}
	same := func(scraped, again float64) (bool, []string) {
		out := &result{}
		p := started(t, map[string]string{`x{rule="3"}[5m]`: point(90, 7), `max(timestamp(y))`: point(90, scraped), `sum(y)`: point(90, again)})
		e := &examiner{ctx: t.Context(), server: p, at: time.Unix(100, 0)}
		ok := out.same(e, r)
		require.NoError(t, e.err)
		return ok, out.Errors
	}
	ok, errs := same(80, 7)
	require.True(t, ok)
	require.Empty(t, errs)
	ok, _ = same(88, 8)
	require.False(t, ok, "a scrape may have been under way")
	_, errs = same(80, 8)
	require.ErrorContains(t, fmt.Errorf("%v", errs), "rule 3 recorded [7] at 1970-01-01T00:01:30Z, where sum(y) is [8]")
}

func TestAskFails(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := &examiner{ctx: ctx, server: started(t, nil), at: time.Unix(1, 0)}
	require.Zero(t, e.number("up"))
	require.ErrorContains(t, e.err, "ask up")
	require.ErrorContains(t, e.err, url.QueryEscape("up"))
}

func TestAgree(t *testing.T) {
	one := func(v float64, names ...string) *result {
		r := &result{Server: "s", all: answer.Answer{}, exact: answer.Answer{}}
		for _, n := range names {
			r.all[n], r.exact[n] = map[int64]float64{1: v}, map[int64]float64{0: v}
		}
		return r
	}
	a := []*result{one(1, "x", "y"), one(1, "x", "y")}
	agree(a)
	require.Empty(t, a[0].Errors)
	a = []*result{one(1, "x", "z"), one(2, "x", "y")}
	agree(a)
	require.Len(t, a[0].Errors, 2)
	require.Contains(t, a[0].Errors[0], "1 series of results of s are missing, and 1 are extra")
	require.Contains(t, a[0].Errors[1], "up to 0.5 apart")
}

func TestRows(t *testing.T) {
	a := &result{Server: "a", CPU: 60, Seconds: 120, Minutes: []float64{20, 40}, PeakRSS: 5e6, LagMax: 3}
	b := &result{Server: "b", CPU: 30, Seconds: 120, Minutes: []float64{10, 20}, PeakRSS: 1e7}
	got := rows([]*result{a, b})
	require.Equal(t, []string{"measured", "a", "b", "ratio"}, got[0])
	require.Equal(t, []string{"CPU-s per minute", "30.00", "15.00", "2.00"}, got[2])
	require.Equal(t, []string{"CPU-s, busiest minute", "40.00", "20.00", "2.00"}, got[3])
	require.Equal(t, []string{"peak RSS, MB", "5", "10", "0.50"}, got[4])
	require.Equal(t, []string{"lag of a rule's last sample, max s", "3.00", "0.00", "–"}, got[13])
	require.Equal(t, []string{"measured", "a"}, rows([]*result{a})[0])
}
