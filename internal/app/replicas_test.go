package app_test

import (
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
)

// pair is two Prometheus that scrape one counter every 15 seconds, the second 7 seconds after the
// first. The counter has 10 more each second.
type pair struct {
	url   string
	begin time.Time
}

// scraped writes what a replica has scraped from a second to another.
func (p pair) scraped(t *testing.T, replica string, from, to int) {
	t.Helper()
	first := map[string]int{"a": 0, "b": 7}[replica]
	s := prompb.TimeSeries{Labels: []prompb.Label{
		{Name: "__name__", Value: "requests_total"}, {Name: "__replica__", Value: replica}, {Name: "cluster", Value: "x"}, {Name: "job", Value: "app"},
	}}
	for sec := from/15*15 + first; sec < to; sec += 15 {
		if sec >= from {
			s.Samples = append(s.Samples, prompb.Sample{Timestamp: p.begin.Add(time.Duration(sec) * time.Second).UnixMilli(), Value: float64(10 * sec)})
		}
	}
	client, err := remote.NewAPI(p.url, remote.WithAPIPath("api/v1/write"))
	require.NoError(t, err)
	_, err = client.Write(t.Context(), remote.WriteV1MessageType, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{s}})
	require.NoError(t, err)
}

// check asks at a second for the samples of the last 5 minutes, their rate and their sum.
func (p pair) check(t *testing.T, sec, gap int) {
	t.Helper()
	at := p.begin.Add(time.Duration(sec) * time.Second)
	m := query(t, p.url, `requests_total[5m]`, at).(model.Matrix)
	require.Len(t, m, 1)
	require.Equal(t, model.Metric{"__name__": "requests_total", "cluster": "x", "job": "app"}, m[0].Metric)
	last := at.Add(-5 * time.Minute)
	if last.Before(p.begin) {
		last = p.begin
	}
	for _, v := range m[0].Values {
		require.LessOrEqual(t, v.Timestamp.Time().Sub(last), time.Duration(gap)*time.Second, "at %s", v.Timestamp.Time())
		last = v.Timestamp.Time()
	}
	require.LessOrEqual(t, at.Sub(last), time.Duration(gap)*time.Second, "at the end")
	require.LessOrEqual(t, len(m[0].Values), 5*60/15+3)
	rate := query(t, p.url, `sum(rate(requests_total[2m]))`, at).(model.Vector)
	require.InDelta(t, 10, float64(rate[0].Value), 1e-9)
	count := query(t, p.url, `count(requests_total)`, at).(model.Vector)
	require.Equal(t, model.SampleValue(1), count[0].Value)
}

// TestReplicas kills one of a pair, then the other.
func TestReplicas(t *testing.T) {
	s := defaults()
	s.Process.Store, s.Query.Query.MaxStaleness = "file://"+t.TempDir(), 0
	srv := start(t, s)
	p := pair{srv.url, time.Now().Add(-2 * time.Hour).Truncate(time.Minute)}
	p.scraped(t, "a", 0, 600)
	p.scraped(t, "b", 0, 600)
	p.check(t, 599, 15)
	p.scraped(t, "b", 600, 1200) // the first is dead
	for _, sec := range []int{610, 640, 700, 900, 1199} {
		p.check(t, sec, 15)
	}
	p.scraped(t, "a", 1200, 3000) // it is back, and the second dies
	p.scraped(t, "b", 1200, 1800)
	for _, sec := range []int{605, 1205, 1500, 1799, 1900, 2999} {
		p.check(t, sec, 15)
	}
	p.scraped(t, "a", 3000, 3600)
	p.scraped(t, "b", 3000, 3900)
	p.check(t, 3599, 15)
	p.check(t, 3900, 15)
	for path, want := range map[string]string{
		"/api/v1/labels":                        `["__name__","cluster","job"]`,
		"/api/v1/series?match[]=requests_total": `[{"__name__":"requests_total","cluster":"x","job":"app"}]`,
		"/api/v1/label/__replica__/values":      `["a","b"]`,
		"/api/v1/series?match[]=" + url.QueryEscape(`requests_total{__replica__="b"}`) + "&start=" + p.at(0): `[{"__name__":"requests_total","__replica__":"b","cluster":"x","job":"app"}]`,
	} {
		code, body := get(t, srv.url+path)
		require.Equal(t, 200, code, body)
		require.JSONEq(t, `{"status":"success","data":`+want+`}`, body, path)
	}
	_, export := get(t, srv.url+"/api/v1/export?match[]=requests_total&start="+p.at(0)+"&end="+p.at(3600))
	require.NotContains(t, export, "__replica__")
	require.Contains(t, export, `"requests_total"`)
	srv.end(t)

	s.Query.Query.HA.Dedup = false
	srv = start(t, s)
	require.Len(t, query(t, srv.url, "requests_total", p.begin.Add(10*time.Minute)).(model.Vector), 2)
	srv.end(t)
}

func (p pair) at(sec int) string {
	return fmt.Sprint(p.begin.Add(time.Duration(sec) * time.Second).Unix())
}

// TestReplicasOfATenant: the runtime configuration says for single tenants which label tells
// replicas apart, in a process with all stages and in one that queries only, while it runs.
func TestReplicasOfATenant(t *testing.T) {
	file := t.TempDir() + "/runtime.yaml"
	configure := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	configure("overrides: {}")
	s := defaults()
	s.Process.Store, s.Query.Query.MaxStaleness = "file://"+t.TempDir(), 0
	s.Ingest.Runtime = admission.Settings{File: file, Period: time.Nanosecond}
	srv := start(t, s)
	p := pair{srv.url, time.Now().Add(-time.Hour).Truncate(time.Minute)}
	p.scraped(t, "a", 0, 600)
	p.scraped(t, "b", 0, 600)
	q := settings.Default[queryapp.Settings]()
	q.Tenants = s.Ingest.Runtime
	reader := startStage(t, s.Process.Store, queryapp.New(q))
	for text, want := range map[string]int{
		"overrides: {}": 1,
		"overrides: {anonymous: {accept_ha_samples: false}}":                                  2,
		"overrides: {anonymous: {ha_replica_label: job}}":                                     2,
		"overrides: {other: {accept_ha_samples: false}}":                                      1,
		"overrides: {anonymous: {ha_cluster_label: job, ha_tracker_failover_timeout: 4m30s}}": 1,
	} {
		configure(text)
		for _, url := range []string{srv.url, reader.url} {
			require.Len(t, query(t, url, "requests_total", p.begin.Add(5*time.Minute)).(model.Vector), want, text)
		}
	}
	reader.end(t)
	srv.end(t)
}
