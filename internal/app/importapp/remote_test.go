package importapp_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// peer is a server with upstream's handler of remote read.
type peer struct {
	*httptest.Server
	reads   atomic.Int64
	header  atomic.Pointer[http.Header] // of the last read
	sampled bool                        // it answers with samples instead of a stream of chunks
	before  func(w http.ResponseWriter, n int64) bool
}

func newPeer(t *testing.T, blocks promblocktest.Blocks) *peer {
	p := &peer{}
	// A frame has one chunk, so that a series comes in parts.
	h := remote.NewReadHandler(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), blocks, func() config.Config { return config.Config{} }, 1e9, 10, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/prefix/api/v1/read", func(w http.ResponseWriter, r *http.Request) {
		p.header.Store(&r.Header)
		n := p.reads.Add(1)
		if p.before != nil && p.before(w, n) {
			return
		}
		if p.sampled {
			r.Body = io.NopCloser(bytes.NewReader(onlySamples(t, r.Body)))
		}
		h.ServeHTTP(w, r)
	})
	count := func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "up[") {
			_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%s,"20"]}]}}`, r.FormValue("time"))
			return
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[%s,"5"]]}]}}`, r.FormValue("start"))
	}
	mux.HandleFunc("/prefix/api/v1/query", count)
	mux.HandleFunc("/prefix/api/v1/query_range", count)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// whole is the history of blocks, in two blocks without tombstones: upstream's chunk querier panics
// where it applies these and cuts chunks off, too.
func whole(t *testing.T) oracle {
	t.Helper()
	dir, all := t.TempDir(), promblocktest.Plain(promblocktest.History(1, hours(0), 30*time.Hour))
	return oracle{promblocktest.Queryable(t, promblocktest.Write(t, dir, hours(0), hours(24), all), promblocktest.Write(t, dir, hours(24), hours(30), all)), all}
}

// onlySamples is a request whose sender takes no stream.
func onlySamples(t *testing.T, body io.Reader) []byte {
	raw, err := io.ReadAll(body)
	require.NoError(t, err)
	raw, err = snappy.Decode(nil, raw)
	require.NoError(t, err)
	var req prompb.ReadRequest
	require.NoError(t, req.Unmarshal(raw))
	req.AcceptedResponseTypes = []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES}
	raw, err = req.Marshal()
	require.NoError(t, err)
	return snappy.Encode(nil, raw)
}

// all imports everything of a peer.
func (p *peer) all() importapp.Remote {
	return importapp.Remote{URL: p.URL + "/prefix", Start: start, End: start.Add(30*time.Hour - time.Millisecond), Timeout: time.Minute}
}

// TestRemote holds that random queries have the answers of upstream's engine over the data of the
// server, bit for bit, whether it streams chunks or sends samples, and that nothing is imported
// twice.
func TestRemote(t *testing.T) {
	want := whole(t)
	for _, sampled := range []bool{false, true} {
		p := newPeer(t, want.blocks)
		p.sampled = sampled
		p.before = func(w http.ResponseWriter, n int64) bool {
			if n == 2 { // a stream that breaks off
				_, _ = w.Write([]byte{200, 1})
				panic(http.ErrAbortHandler)
			}
			return false
		}
		store, opts := newStore(nil), options()
		opts.TempDir = t.TempDir()
		o, err := importapp.RunInto(t.Context(), store, opts, p.all(), time.Now, nil)
		require.NoError(t, err)
		require.Equal(t, int64(16), p.reads.Load(), "windows of two hours, and one repeated")
		same(t, store, want, 1, 30)

		left, err := os.ReadDir(opts.TempDir)
		require.NoError(t, err)
		require.Empty(t, left)

		n := samplesOf(t, store)
		require.Equal(t, n, o.Report().Samples)
		overlap := p.all()
		overlap.URL += "/api/v1/read"
		overlap.Match = []string{`{__name__=~".+"}`}
		again, err := importapp.RunInto(t.Context(), store, opts, overlap, time.Now, nil)
		require.NoError(t, err)
		require.Zero(t, again.Report())
		require.Equal(t, int64(16), p.reads.Load(), "nothing was read")
		require.Empty(t, store.Violations())
	}
}

// TestRemoteGrows holds that a window which may still get samples, or has not even begun, does not
// count as imported: a later import reads it again.
func TestRemoteGrows(t *testing.T) {
	want := whole(t)
	p, store := newPeer(t, want.blocks), newStore(nil)
	for _, tc := range []struct {
		now   time.Duration // after the start
		reads int64
	}{
		{13 * time.Hour, 7},
		{14*time.Hour + time.Minute, 2}, // the window that was under way, and a minute of the next
		{31 * time.Hour, 9},             // also the one that had just ended
		{31 * time.Hour, 0},
	} {
		r := p.all()
		r.Now = start.Add(tc.now)
		before := p.reads.Load()
		_, err := importapp.RunInto(t.Context(), store, options(), r, time.Now, nil)
		require.NoError(t, err)
		require.Equal(t, tc.reads, p.reads.Load()-before, tc.now)
	}
	same(t, store, want, 1, 30)

	early := p.all()
	early.Now = start.Add(-time.Second)
	_, err := importapp.RunInto(t.Context(), store, options(), early, time.Now, nil)
	require.ErrorContains(t, err, "is in the future")
}

// TestRemoteSlices holds that windows whose series need more memory than there is are read once,
// that a range within a window is exact, and that series which several selectors match count once.
func TestRemoteSlices(t *testing.T) {
	want := whole(t)
	p := newPeer(t, want.blocks)
	r := p.all()
	r.Match = []string{`{instance="a"}`, `{instance=~"a|b"}`, `{job=~".*"}`}
	r.Start, r.End = start.Add(90*time.Minute), start.Add(4*time.Hour+90*time.Minute)
	inputs, err := importapp.RemoteInputs(t.Context(), r)
	require.NoError(t, err)
	set := bulk.Settings{Level: key.L12h, MemoryBytes: 12 << 10, Concurrency: 1, WindowDelay: time.Minute, MaxSamples: 1e9}
	plan, err := bulk.MakePlan(set, now(), inputs, bulk.Past{})
	require.NoError(t, err)
	store := newStore(nil)
	_, err = bulk.Run(t.Context(), set, store, name, plan, nil)
	require.NoError(t, err)
	require.Equal(t, int64(3*3), p.reads.Load(), "selectors of windows")
	m, _, err := catalog.ReadManifest(t.Context(), store, name)
	require.NoError(t, err)
	require.Greater(t, len(m.Blocks), 1, "slices")
	var samples int64
	for _, b := range m.Blocks {
		samples += b.Samples
		require.GreaterOrEqual(t, b.MinT, r.Start.UnixMilli())
		require.LessOrEqual(t, b.MaxT, r.End.UnixMilli())
	}
	q, err := want.blocks.Querier(r.Start.UnixMilli(), r.End.UnixMilli())
	require.NoError(t, err)
	defer q.Close()
	require.Equal(t, promblocktest.Count(t, q), samples)
}

// TestRemoteRequests: what is asked has the configured credentials, refusals are told at once, and
// settings that cannot be are explained.
func TestRemoteRequests(t *testing.T) {
	want := whole(t)
	p := newPeer(t, want.blocks)
	conf := filepath.Join(t.TempDir(), "http.yml")
	require.NoError(t, os.WriteFile(conf, []byte("basic_auth: {username: me, password: secret}\n"), 0o600))
	r := p.all()
	r.End = start.Add(time.Hour)
	r.HTTPConfig, r.Headers = conf, []string{"X-Scope-OrgID: team", "x-more:1"}
	bring := func(r importapp.Remote, change ...func(*importapp.Settings)) (*importapp.Outcome, error) {
		opts := options()
		for _, f := range change {
			f(&opts)
		}
		return importapp.RunInto(t.Context(), newStore(nil), opts, r, time.Now, nil)
	}
	_, err := bring(r)
	require.NoError(t, err)
	h := *p.header.Load()
	require.Equal(t, []string{"Basic bWU6c2VjcmV0", "team", "1"}, []string{h.Get("Authorization"), h.Get("X-Scope-OrgID"), h.Get("X-More")})
	r = p.all()
	r.Token = "t"
	before := p.reads.Load()
	o, err := bring(r, func(s *importapp.Settings) { s.DryRun = true })
	require.NoError(t, err)
	require.Equal(t, before, p.reads.Load())
	require.Contains(t, o.Text(), "windows of two hours  15\n")
	require.Contains(t, o.Text(), "to import: series     5\n")
	_, err = bring(r)
	require.NoError(t, err)
	require.Equal(t, "Bearer t", (*p.header.Load()).Get("Authorization"))

	p.before = func(w http.ResponseWriter, _ int64) bool {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	}
	_, err = bring(r)
	require.ErrorContains(t, err, "the server answers 401 Unauthorized: who are you?")
	require.ErrorContains(t, err, "the same command continues it")
	for _, tc := range []struct {
		change func(*importapp.Remote)
		want   string
	}{
		{func(r *importapp.Remote) { r.URL = "localhost:9090" }, `--url "localhost:9090": want the http:// or https:// address`},
		{func(r *importapp.Remote) { r.Match = []string{"up{"} }, "--match: "},
		{func(r *importapp.Remote) { r.Headers = []string{"nothing"} }, `--header "Nothing": want a name, a colon and a value`},
		{func(r *importapp.Remote) { r.HTTPConfig = conf + "x" }, "--http.config.file: "},
		{func(r *importapp.Remote) { r.End = start.Add(-time.Hour) }, "want a start before the end"},
	} {
		r := p.all()
		tc.change(&r)
		_, err := bring(r)
		require.ErrorContains(t, err, tc.want)
	}
}
