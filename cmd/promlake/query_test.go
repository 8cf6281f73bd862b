package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
)

// at is when the test's samples were taken.
var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// filled returns the URL of a store with samples of two tenants.
func filled(t *testing.T) string {
	t.Helper()
	store := "file://" + t.TempDir()
	s := process.DefaultSettings()
	s.Store = store
	h, done, err := process.Open(t.Context(), s, slog.New(slog.DiscardHandler), ingestapp.New(nil, ingest.DefaultSettings()))
	require.NoError(t, err)
	defer func() { require.NoError(t, done()) }()
	for name, value := range map[string]float64{tenant.Default: 1, "other": 2} {
		client, err := remote.NewAPI("http://store", remote.WithAPIHTTPClient(&http.Client{Transport: source{tenant: name}.identified(ask.Loopback(h))}))
		require.NoError(t, err)
		req := &prompb.WriteRequest{}
		for i := range 3 {
			req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
				Labels:  []prompb.Label{{Name: "__name__", Value: "up"}, {Name: "job", Value: string(rune('a' + i))}},
				Samples: []prompb.Sample{{Timestamp: at.Add(-time.Minute).UnixMilli(), Value: 0}, {Timestamp: at.UnixMilli(), Value: value}},
			})
		}
		_, err = client.Write(t.Context(), remote.WriteV1MessageType, req)
		require.NoError(t, err)
	}
	return store
}

func TestQueryCommand(t *testing.T) {
	store := filled(t)
	s := process.DefaultSettings()
	s.Store = store
	h, done, err := process.Open(t.Context(), s, slog.New(slog.DiscardHandler), queryapp.New(settings.Default[queryapp.Settings]()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, done()) })
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)

	instant := "--time=" + at.Format(time.RFC3339)
	for _, source := range [][]string{{"--store=" + store}, {"--url=" + srv.URL}} {
		for _, tc := range []struct {
			name string
			args []string
			want string
		}{
			{"table", []string{instant, "up"}, `SERIES       TIME                      VALUE
up{job="a"}  2026-01-02T03:04:05.000Z  1
up{job="b"}  2026-01-02T03:04:05.000Z  1
up{job="c"}  2026-01-02T03:04:05.000Z  1
`},
			{"json", []string{instant, "--format=json", `up{job="b"}`}, `{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"b"},"value":[1767323045,"1"]}]}
`},
			{"tenant", []string{instant, "--tenant=other", "sum(up)"}, `SERIES  TIME                      VALUE
{}      2026-01-02T03:04:05.000Z  6
`},
			{"scalar", []string{"--time=10.5", "scalar(up) + 1"}, `TIME                      VALUE
1970-01-01T00:00:10.500Z  NaN
`},
			{"string", []string{"--time=0", `"x"`}, `TIME                      VALUE
1970-01-01T00:00:00.000Z  x
`},
			{"range", []string{"--start=2026-01-02T03:03:05Z", "--end=2026-01-02T03:04:05Z", "--step=30s", `up{job="a"}`}, `SERIES       TIME                      VALUE
up{job="a"}  2026-01-02T03:03:05.000Z  0
up{job="a"}  2026-01-02T03:03:35.000Z  0
up{job="a"}  2026-01-02T03:04:05.000Z  1
`},
		} {
			t.Run(source[0][2:5]+"/"+tc.name, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				args := append(append([]string{"query"}, source...), tc.args...)
				code := run(t.Context(), args, flags.Streams{Out: &stdout, Err: &stderr})
				require.Equal(t, 0, code, stderr.String())
				require.Equal(t, tc.want, stdout.String())
			})
		}
	}
}

func TestQueryOfNoStore(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"query", "--store=" + missing, "up"}, flags.Streams{Out: &stdout, Err: &stderr}))
	require.Contains(t, stderr.String(), missing+": no such file or directory")
	require.NoDirExists(t, missing)
}

func TestNewQuestion(t *testing.T) {
	ts := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	now := ts(10_000)
	for _, tc := range []struct {
		name, at, start, end string
		step                 time.Duration
		want                 question
		err                  string
	}{
		{name: "now", want: question{end: now}},
		{name: "instant", at: "12", want: question{end: ts(12)}},
		{name: "range", start: "100", end: "200", step: time.Minute, want: question{start: ts(100), end: ts(200), step: time.Minute}},
		{name: "default step", start: "0", want: question{start: ts(0), end: now, step: 40 * time.Second}},
		{name: "shortest default step", start: "9999", want: question{start: ts(9999), end: now, step: time.Second}},
		{name: "both", at: "1", start: "1", err: "--time belongs to an instant query"},
		{name: "end alone", end: "1", err: "--end and --step belong to a range query"},
		{name: "step alone", step: time.Second, err: "--end and --step belong to a range query"},
		{name: "backwards", start: "20", end: "10", err: "want an end after the start"},
		{name: "no time", at: "noon", err: `--time "noon": want now-1h, RFC 3339 or seconds since 1970`},
		{name: "no start", start: "noon", err: `--start "noon"`},
		{name: "no end", start: "1", end: "NaN", err: `--end "NaN"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q, err := newQuestion("x", tc.at, tc.start, tc.end, tc.step, now)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			tc.want.expr = "x"
			require.Equal(t, tc.want, q)
		})
	}
}

func TestPrintHistograms(t *testing.T) {
	var out bytes.Buffer
	h := &model.SampleHistogram{Count: 2, Sum: 3}
	require.NoError(t, printTable(&out, model.Vector{{Metric: model.Metric{"a": "b"}, Histogram: h}}))
	require.NoError(t, printTable(&out, model.Matrix{{Metric: model.Metric{"a": "b"}, Histograms: []model.SampleHistogramPair{{Histogram: h}}}}))
	require.Contains(t, out.String(), "Count: 2")
}

func TestExplainCommand(t *testing.T) {
	store := filled(t)
	ask := func(args ...string) (string, int) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"query", "--store=" + store, "--time=" + at.Format(time.RFC3339), "--explain"}, args...), flags.Streams{Out: &stdout, Err: &stderr})
		return stdout.String() + stderr.String(), code
	}
	out, code := ask(`count_values("v", up)`)
	require.Zero(t, code, out)
	require.Contains(t, out, `engine: count_values("v", up)
kept: count_values("v", up): count_values makes labels of values
kept: up: its selectors have about 6 samples, fewer than 50000
selector up: 3 series, 6 samples in 1 segments and 0 blocks
`)

	out, code = ask("sum(up)")
	require.Zero(t, code, out)
	require.Contains(t, out, "engine: {__promlake_pushed__=\"0\"}\nselector up: 3 series, 6 samples in 1 segments and 0 blocks\n")

	out, code = ask("--analyze", "--query.min-pushed-samples=-1", "sum(up)")
	require.Zero(t, code, out)
	require.Contains(t, out, `engine: {__promlake_pushed__="0"}`)
	require.Contains(t, out, "prom_sum")
	require.Regexp(t, `took [0-9.]+ ms, 1 rows`, out)

	out, code = ask("--format=json", "sum(up)")
	require.Zero(t, code, out)
	require.Contains(t, out, `"query":"sum(up)"`)

	out, code = ask("sum(")
	require.Equal(t, 1, code)
	require.Contains(t, out, "parse error")
}
