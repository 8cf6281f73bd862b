package sql

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// overHTTP is the API's backend over a stage.
type overHTTP struct {
	promql.QueryEngine
	*query.Stage
}

// serve answers the API over a lake.
func serve(l *laketest.Lake) *httptest.Server {
	l.TB.Helper()
	s := settings.Default[api.Settings]()
	s.Parser = query.ParserOptions()
	h, err := api.New(s, overHTTP{l.Engine(), l.Stage}, nil, laketest.Now, slog.New(slog.DiscardHandler), nil)
	require.NoError(l.TB, err)
	srv := httptest.NewServer(h)
	l.TB.Cleanup(srv.Close)
	return srv
}

// askAs sends a form to a path of the API for a tenant.
func askAs(ctx context.Context, srv *httptest.Server, tenantID, path string, form url.Values) (code int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set(tenant.Header, tenantID)
	resp, err := srv.Client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// recordedStore is a remote store that records what is asked of it.
type recordedStore struct {
	objstore.Store
	mu    sync.Mutex
	asked []string // "GET key offset length", "LIST prefix", "PUT key", "DELETE key"
}

func (s *recordedStore) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
}

// take returns what was asked since the last call.
func (s *recordedStore) take() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, s.asked = s.asked, nil
	return out
}

func (s *recordedStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	s.note("GET %s %d %d", key, offset, length)
	return s.Store.Get(ctx, key, offset, length)
}

func (s *recordedStore) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	s.note("LIST %s", prefix)
	return s.Store.List(ctx, prefix, startAfter)
}

func (s *recordedStore) Put(ctx context.Context, key string, body io.ReadSeeker, c objstore.Condition) (string, error) {
	s.note("PUT %s", key)
	return s.Store.Put(ctx, key, body, c)
}

func (s *recordedStore) Delete(ctx context.Context, key string) error {
	s.note("DELETE %s", key)
	return s.Store.Delete(ctx, key)
}

// strange returns what was asked of a store beside the tenant's segments, manifest and live objects,
// and ranges that are not within an object.
func strange(t *testing.T, store *laketest.Dir, tenantID string, asked []string) (out []string) {
	t.Helper()
	snap, err := catalog.Take(t.Context(), store, tenantID, key.MinTime, key.MaxTime)
	require.NoError(t, err)
	live := []string{key.Manifest(tenantID)} // keys, and prefixes of blocks
	for _, s := range snap.Segments {
		live = append(live, s.String())
	}
	for _, b := range snap.Blocks {
		live = append(live, key.Block{Tenant: tenantID, Level: b.Level, Window: b.Window, ID: b.ID}.Prefix())
	}
	for _, a := range asked {
		f := strings.Fields(a)
		switch {
		case f[0] == "LIST" && strings.HasPrefix(f[1], key.SegmentsPrefix(tenantID)):
		case f[0] == "GET" && slices.ContainsFunc(live, func(k string) bool { return f[1] == k || strings.HasSuffix(k, "/") && strings.HasPrefix(f[1], k) }):
			var offset, length, size int64
			_, err := fmt.Sscan(f[2]+" "+f[3], &offset, &length)
			require.NoError(t, err)
			for o := range store.List(t.Context(), f[1], "") {
				size = o.Size
			}
			if offset < -size || offset > size || offset >= 0 && length > size-offset {
				out = append(out, a+" of "+fmt.Sprint(size))
			}
		default:
			out = append(out, a)
		}
	}
	return out
}

// TestSQLReadsItsTenantAlone: over HTTP, no statement of a tenant reads an object of another one, or
// an object of its own that is not live; refused statements are the client's fault, read nothing of
// the data, and neither read nor write anything else.
func TestSQLReadsItsTenantAlone(t *testing.T) {
	t.Setenv("PROMLAKE_TEST_SECRET", secret)
	dir := laketest.NewDir(t)
	writer := laketest.New(t, dir, query.Settings{})
	rows := laketest.RandomRows(rand.New(rand.NewPCG(31, 32)))
	for _, id := range []string{"a", "b"} {
		laketest.WriteMixture(writer, id, rows)
		writer.Write(id, []segment.Row{{Labels: laketest.Metric("own", "who", id), Floats: []segment.Float{{T: laketest.Now().UnixMilli(), V: 1}}}}, segment.Metadata{Metric: "own", Type: "gauge", Help: "of " + id})
		writer.Delete(id, []*labels.Matcher{laketest.Equal("job", "a")}, laketest.Now().UnixMilli()-90*minute, laketest.Now().UnixMilli()-60*minute)
		// What compaction has replaced is still there.
		snap, err := catalog.Take(t.Context(), dir, id, key.MinTime, key.MaxTime)
		require.NoError(t, err)
		writer.Commit(id, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			s, b := snap.Segments[0], m.Blocks[0]
			m.Consumed = append(m.Consumed, catalog.Consumed{SegmentID: s.SegmentID(), At: laketest.Now().UnixMilli()})
			m.Retired = append(m.Retired, catalog.Retired{BlockID: b.BlockID(), At: laketest.Now().UnixMilli()})
			m.Blocks = slices.Clone(m.Blocks[1:])
			return m, nil
		})
	}
	store := &recordedStore{Store: dir}
	l := laketest.New(t, store, query.Settings{Timeout: 5 * time.Minute})
	srv := serve(l)
	ask := func(id, text string) (int, string) {
		code, body, err := askAs(t.Context(), srv, id, "/api/v1/sql", url.Values{"query": {text}, "format": {"csv"}})
		require.NoError(t, err, text)
		return code, body
	}

	statements, files := hostileFiles(t)
	require.GreaterOrEqual(t, len(statements), 200)
	before, err := os.ReadDir(files)
	require.NoError(t, err)
	_, samples := ask("a", "SELECT count(*) FROM samples")
	store.take()
	for _, s := range statements {
		code, body := ask("a", s)
		require.Equal(t, http.StatusBadRequest, code, "%s\n%s", s, body)
		require.Contains(t, body, `"errorType":"bad_data"`, s)
		require.NotContains(t, body, secret, s)
		require.Empty(t, strange(t, dir, "a", store.take()), s)
	}
	after, err := os.ReadDir(files)
	require.NoError(t, err)
	require.Equal(t, len(before), len(after), "files appeared")
	_, still := ask("a", "SELECT count(*) FROM samples")
	require.Equal(t, samples, still, "the tables are as they were")
	store.take()

	read, at := 0, fmt.Sprintf("make_timestamptz(%d)", laketest.Now().UnixMicro())
	for _, s := range []string{
		"FROM samples", "FROM series", "FROM histograms", "FROM exemplars", "FROM metadata", "FROM blocks", "FROM segments", "FROM rollup_5m", "FROM rollup_1h",
		"FROM stored_samples", "FROM marked_samples", "FROM stored_series", "FROM promlake_metric('own', NULL, NULL)", "FROM promlake_metric('../b/own', NULL, NULL)",
		"SELECT count(*) FROM samples WHERE labels['who'] = 'b' OR metric = '../b' OR labels['__tenant_id__'] = 'b'",
		"FROM promql('{__name__=~\".+\",who!=\"\"}', " + at + ", " + at + ", '1m')", "FROM promql('own{__tenant_id__=\"b\"} or own{tenant=\"b\"} or own{who=\"b\"}', " + at + ", " + at + ", '1m')",
		"SUMMARIZE series", "SHOW TABLES", "DESCRIBE samples", "EXPLAIN ANALYZE FROM samples", "SELECT * FROM information_schema.tables", "SELECT a.value FROM samples a JOIN samples b USING (ts, metric, labels)",
	} {
		code, body := ask("a", s)
		require.Equal(t, http.StatusOK, code, "%s\n%s", s, body)
		require.NotContains(t, body, `"who"":""b"`, s)
		require.NotContains(t, body, "of b", s)
		asked := store.take()
		require.Empty(t, strange(t, dir, "a", asked), s)
		read += len(asked)
	}
	require.Greater(t, read, 20, "the store was asked")
	_, body := ask("a", "SELECT labels['who'] AS who FROM samples WHERE metric = 'own'")
	require.Equal(t, "who\na\n", body)
	require.Empty(t, strange(t, dir, "a", store.take()))
	_, body = ask("b", "SELECT labels['who'] AS who FROM samples WHERE metric = 'own'")
	require.Equal(t, "who\nb\n", body)
	require.Empty(t, strange(t, dir, "b", store.take()))
	for _, id := range []string{"a/../b", "a|b", "../b", "a/"} {
		code, body := ask(id, "FROM samples")
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	require.Empty(t, store.take(), "whoever names no tenant reads nothing")
	require.NotEmpty(t, strange(t, dir, "a", []string{"GET " + key.Manifest("b") + " 0 -1", "PUT " + key.Manifest("a")}), "the check bites")
}
