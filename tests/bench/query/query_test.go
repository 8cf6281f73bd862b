package query

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/server"
)

// small is a scale whose data takes no time.
var small = scale{Series: 20, Samples: 130, History: 3 * time.Hour}

func name(ls []prompb.Label) string {
	return ls[slices.IndexFunc(ls, func(l prompb.Label) bool { return l.Name == "__name__" })].Value
}

// TestFeed decodes all requests: every sample of every series once, in order of time over all
// requests but those of one slice.
func TestFeed(t *testing.T) {
	var mu sync.Mutex
	last, count, newest := map[string]int64{}, map[string]int{}, int64(0)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		w, err := remote.DecodeWriteRequest(req.Body)
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		before := newest
		for _, ts := range w.Timeseries {
			k := fmt.Sprint(ts.Labels)
			for _, s := range ts.Samples {
				if s.Timestamp <= last[k] || s.Timestamp < before-time.Hour.Milliseconds() || s.Timestamp%step.Milliseconds() == 0 {
					panic(fmt.Sprintf("%s at %d after %d, newest %d", k, s.Timestamp, last[k], before))
				}
				last[k], newest = s.Timestamp, max(newest, s.Timestamp)
			}
			count[name(ts.Labels)] += len(ts.Samples)
		}
	}))
	defer srv.Close()
	n, series, err := feed(t.Context(), srv.URL, small)
	require.NoError(t, err)
	require.Equal(t, int64(20+2+2+10+20), series)
	require.Equal(t, map[string]int{"m": 20 * 130, "a": 2 * 130, "b": 2 * 130, "h_bucket": 10 * 130, "l": 20 * 180}, count)
	require.Equal(t, int64(smallSamples), n)
}

func TestFeedStopsAtAnError(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "too old", http.StatusBadRequest) }))
	defer srv.Close()
	_, _, err := feed(t.Context(), srv.URL, small)
	require.ErrorContains(t, err, "status 400: too old")
}

// TestBucketsAreCumulative: a bucket never counts less than the one below it, nor less than before.
func TestBucketsAreCumulative(t *testing.T) {
	var below []float64
	for k := range bounds {
		next, last := bucket(3, k), 0.0
		for i := range 50 {
			v := next()
			require.GreaterOrEqual(t, v, last)
			last = v
			if k == 0 {
				below = append(below, v)
			} else {
				require.GreaterOrEqual(t, v, below[i])
				below[i] = v
			}
		}
	}
}

func TestQuestions(t *testing.T) {
	qs := scale{Series: 10_000, Samples: 2000, History: 90 * 24 * time.Hour}.questions()
	require.Len(t, qs, 10)
	require.Equal(t, 479*time.Minute, qs[0].End.Sub(qs[0].Start))
	require.Equal(t, "max(max_over_time(l[90d])), instant", qs[9].name())
	require.Equal(t, "/api/v1/query?nocache=1&query=max%28max_over_time%28l%5B90d%5D%29%29&time=1772533200&timeout=2m", qs[9].path())
	require.Contains(t, qs[0].path(), "/api/v1/query_range?end=1772533200&nocache=1&query=")
	require.Contains(t, qs[0].path(), "&start=1772504460&step=60&")
	few := small.questions()
	require.Equal(t, 11*time.Minute, few[0].End.Sub(few[0].Start))
}

func TestScale(t *testing.T) {
	for _, f := range []Flags{
		{Series: 0, Samples: 100, History: time.Hour},
		{Series: 10, Samples: 30, History: time.Hour},
		{Series: 1, Samples: 1000, History: time.Hour},
		{Series: 1, Samples: 100, History: time.Hour + time.Second},
		{Series: 1, Samples: 100, History: time.Hour, Rounds: -1},
		{Set: hosts, Hosts: 3, Span: time.Hour},
		{Set: hosts, Hosts: 20, Span: time.Minute},
		{Set: hosts, Hosts: 100, Span: 25 * time.Hour},
		{Set: hosts, Hosts: 100, Span: time.Hour + time.Second},
	} {
		_, err := f.scale()
		require.Error(t, err, "%+v", f)
	}
}

// The test binary is also the servers under test: fake <answer> <arguments of the server>.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "fake" {
		if os.Args[3] == "compact" {
			if err := fakeCompact(os.Args[4:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
		fmt.Fprintln(os.Stderr, fake(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// smallSamples is the number of samples of small.
const smallSamples = (20+2+2+10)*130 + 20*180

// fakeCompact gives the store a block that seems to hold all samples.
func fakeCompact(args []string) error {
	url := args[slices.Index(args, "--store")+1]
	store, err := filestore.New(strings.TrimPrefix(url, "file://"))
	if err != nil {
		return err
	}
	b := catalog.Block{Level: key.L24h, ID: ulid.Make(), MaxT: 1, Series: 1, Samples: smallSamples, Bytes: 4}
	m, err := catalog.Commit(context.Background(), store, tenant.Default, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		if len(m.Blocks) == 0 { // later runs find it
			m.Blocks = append(m.Blocks, b)
		}
		return m, nil
	})
	if err != nil {
		return err
	}
	_, err = store.Put(context.Background(), m.Blocks[0].Key(tenant.Default).Prefix()+"rollup-5m.parquet", strings.NewReader("1234"), objstore.Condition{})
	return err
}

func fake(value string, args []string) error {
	addr := ""
	for _, a := range args {
		if i := strings.Index(a, "127.0.0.1:"); i >= 0 {
			addr = a[i:]
		}
	}
	return http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v1/query") {
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"g":"1"},"values":[[60,%q]]}]}}`, value)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
}

// fakes returns flags for servers that give these answers; the peers hold their data already.
func fakes(t *testing.T, promlake, victoria, prometheus string) *Flags {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	program := func(path, answer string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf("#!/bin/sh\nexec %q fake %q \"$@\"\n", self, answer)), 0o755))
	}
	f := &Flags{
		Flags: server.Flags{ServerBin: filepath.Join(dir, "promlake"), PeersDir: dir}, Series: small.Series, Samples: small.Series * small.Samples, History: small.History,
		Rounds: 2, Cold: true, Data: filepath.Join(dir, "data"), Questions: []string{"topk", "90d", "instant"},
	}
	program(f.ServerBin, promlake)
	program(filepath.Join(dir, "usr", "bin", server.VictoriaMetrics), victoria)
	program(filepath.Join(dir, "usr", "bin", server.Prometheus), prometheus)
	for _, peer := range []string{server.VictoriaMetrics, server.Prometheus} {
		require.NoError(t, os.MkdirAll(filepath.Join(f.Data, peer), 0o755))
		content := fmt.Sprintf(`{"scale":{"series":%d,"samples_per_series":%d,"history_ns":%d},"life":{"samples":5}}`, small.Series, small.Samples, small.History)
		require.NoError(t, os.WriteFile(filepath.Join(f.Data, peer, ready), []byte(content), 0o644))
	}
	return f
}

func measured(t *testing.T, f *Flags) *report {
	t.Helper()
	s, err := f.scale()
	require.NoError(t, err)
	targets, err := f.targets(f.Data)
	require.NoError(t, err)
	r, err := f.measure(context.Background(), s, targets)
	require.NoError(t, err)
	return r
}

func TestMeasure(t *testing.T) {
	f := fakes(t, "2", "3", "2")
	r := measured(t, f)
	require.Equal(t, []string{server.Promlake, server.VictoriaMetrics, server.Prometheus}, r.Targets)
	require.Len(t, r.Questions, 3)
	require.Equal(t, int64(smallSamples), r.Prepared[0].Life.Samples)
	require.Equal(t, disk.Files{"rollup-5m": 4}, r.Prepared[0].Life.Kept)
	require.Positive(t, r.Prepared[0].Life.Compaction.PeakRSS)
	for i := range r.Cells {
		for k, c := range r.Cells[i] {
			require.Empty(t, c.Error+c.Apart)
			require.Positive(t, c.Cold)
			require.Positive(t, c.ColdRSS)
			require.GreaterOrEqual(t, len(c.Warm), 2)
			require.Positive(t, r.PeakRSS[k])
		}
	}
	require.NoError(t, r.publish(io.Discard, true))

	f.Samples *= 2
	f.History *= 2
	s, err := f.scale()
	require.NoError(t, err)
	targets, err := f.targets(f.Data)
	require.NoError(t, err)
	_, err = f.measure(t.Context(), s, targets)
	require.ErrorContains(t, err, "holds other data")
}

func TestMeasureFindsAnotherAnswer(t *testing.T) {
	f := fakes(t, "2", "2", "2.1")
	f.Cold, f.Questions = false, []string{"topk"}
	r := measured(t, f)
	require.Contains(t, r.Cells[0][0].Apart, "values up to 0.0476 apart")
	require.ErrorIs(t, r.publish(io.Discard, false), errFailed)
}
