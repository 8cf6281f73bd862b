package query_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/stats"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// workerStage is a query stage behind the HTTP API.
type workerStage struct {
	promql.QueryEngine
	*query.Stage
}

// handlerOf returns the HTTP API of a stage over a store.
func handlerOf(t *testing.T, store objstore.Store, s query.Settings) http.Handler {
	t.Helper()
	l := laketest.New(t, store, s)
	set := settings.Default[api.Settings]()
	set.Parser = query.ParserOptions()
	h, err := api.New(set, workerStage{l.Engine(), l.Stage}, nil, laketest.Now, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	return h
}

// startWorker serves a stage over a store, and returns its address. around may change its answers.
func startWorker(t *testing.T, store objstore.Store, s query.Settings, around func(http.Handler) http.Handler) string {
	t.Helper()
	h := handlerOf(t, store, s)
	if around != nil {
		h = around(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// dividing returns a stage that divides all range queries that it can over workers.
func dividing(t *testing.T, store objstore.Store, workers ...string) *laketest.Lake {
	t.Helper()
	return laketest.New(t, store, query.Settings{Workers: workers, DivideBytes: 1, DivideWindows: -1})
}

// piecesOf returns the pieces of a lake's queries by result.
func piecesOf(l *laketest.Lake) map[string]int {
	out := map[string]int{}
	for _, result := range []string{"ok", "failed", "slow", "large", "local", "whole"} {
		if n := l.Counted("promlake_query_pieces_total", result); n > 0 {
			out[result] = int(n)
		}
	}
	return out
}

// recorded is the answer of a handler to a request that it may read.
func recorded(next http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	return rec
}

// dividedQuery is a query that three workers answer in nine slices.
var dividedQuery = laketest.Query{Text: `sum by (job) (rate(m1[5m]))`, Start: laketest.Now().Add(-180 * time.Minute), End: laketest.Now(), Step: time.Minute}

// TestDividedQueries: what queries and histograms answer is the same if they are divided, also while
// series come and go; the coordinator reads no sample.
func TestDividedQueries(t *testing.T) {
	for _, layout := range laketest.Layouts {
		store := laketest.NewDir(t)
		plain := laketest.New(t, store, query.Settings{})
		rows := laketest.PushRows()
		for i := range 8 { // series that have samples for half an hour, and histograms
			r, from := segment.Row{Labels: labels.FromStrings("__name__", "short", "i", fmt.Sprint(i))}, laketest.Now().Add(-time.Duration(200-20*i)*time.Minute)
			h := segment.Row{Labels: labels.FromStrings("__name__", "hist", "i", fmt.Sprint(i))}
			for k := range int64(60) {
				at := from.Add(time.Duration(k) * 30 * time.Second).UnixMilli()
				r.Floats = append(r.Floats, segment.Float{T: at, V: 0.1 * float64(k*int64(i+1))})
				h.Hists = append(h.Hists, segment.Hist{T: at, FH: tsdbutil.GenerateTestFloatHistogram(k)})
			}
			rows = append(rows, r, h)
		}
		layout.Write(plain, tenant.Default, rows)
		divided := dividing(t, store, startWorker(t, store, query.Settings{}, nil), startWorker(t, store, laketest.PushAll, nil), startWorker(t, store, laketest.PushNone, nil))
		texts := append(slices.Clone(laketest.PushedQueries),
			`short`, `sum(short)`, `sum(rate(short[5m]))`, `limitk(2, short)`, `topk(1, short)`, `sort(short)`, `absent(short)`, `short @ start()`, `short @ end() + on(i) short`,
			`short offset 10m`, `short offset -10m`, `max_over_time(short[20m:90s])`, `sum_over_time(short[range()])`, `short - on(i) short offset range()`, `vector(step())`, `hist`, `rate(hist[5m])`,
			`sum(hist)`, `histogram_quantile(0.5, rate(hist[5m]))`, `sum(hist) + on() group_left short{i="1"}`, `count_values("v", short)`, `scalar(short{i="3"})`, `quantile(2, short)`, `{i="1"} + on(i) short{i="1"}`)
		for _, text := range texts {
			for _, q := range laketest.Ways(text)[1:] {
				want, got := plain.Exec(t.Context(), q), divided.Exec(t.Context(), q)
				if want.Err != nil {
					require.EqualError(t, got.Err, want.Err.Error(), q)
					continue
				}
				laketest.Compare(t, want, got, q, func(v, x float64) bool { // the payload of NaN depends on the processor
					return math.Float64bits(v) == math.Float64bits(x) || math.IsNaN(v) && math.IsNaN(x)
				})
				require.True(t, want.Value.(promql.Matrix).String() == got.Value.(promql.Matrix).String(), "histograms, and the order of series: %s", q)
				w, i := want.Warnings.AsStrings(text, 0, 0)
				gw, gi := got.Warnings.AsStrings(text, 0, 0)
				require.ElementsMatch(t, append(w, i...), append(gw, gi...), "positions of notes: %s", q)
			}
		}
		pieces := piecesOf(divided)
		require.Greater(t, pieces["ok"], 4*len(texts))
		require.Zero(t, pieces["failed"], pieces)
	}
}

// TestDividedQueriesFailover: a piece that a worker does not answer as it should is evaluated by
// another one, or in the end by the coordinator. The answer is never incomplete.
func TestDividedQueriesFailover(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, query.Settings{})
	plain.Write(tenant.Default, laketest.PushRows())
	want := plain.Exec(t.Context(), dividedQuery)
	good := startWorker(t, store, query.Settings{}, nil)
	changed := func(change func(body []byte) []byte) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := recorded(next, r)
				for k, v := range rec.Header() {
					w.Header()[k] = v
				}
				w.WriteHeader(rec.Code)
				_, _ = w.Write(change(rec.Body.Bytes()))
			})
		}
	}
	resealed := func(change func(stream []byte) []byte) func(http.Handler) http.Handler {
		return changed(func(b []byte) []byte {
			b = change(b[:len(b)-4])
			return binary.LittleEndian.AppendUint32(b, checksum.Update(0, b))
		})
	}
	status := func(code int) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) })
		}
	}
	for name, around := range map[string]func(http.Handler) http.Handler{
		"500":  status(http.StatusInternalServerError),
		"429":  status(http.StatusTooManyRequests),
		"404":  status(http.StatusNotFound),
		"401":  status(http.StatusUnauthorized),
		"page": status(http.StatusOK),
		"redirect": func(http.Handler) http.Handler {
			return http.RedirectHandler("http://"+good+"/api/v1/piece", http.StatusTemporaryRedirect)
		},
		"garbage":          changed(func(b []byte) []byte { return bytes.Repeat([]byte("garbage "), len(b)/8) }),
		"nothing":          changed(func([]byte) []byte { return nil }),
		"half":             changed(func(b []byte) []byte { return b[:len(b)/2] }),
		"without the end":  changed(func(b []byte) []byte { return b[:len(b)-len(b)/4] }),
		"another version":  resealed(func(b []byte) []byte { return bytes.Replace(b, []byte(`"version":1`), []byte(`"version":9`), 1) }),
		"a series too few": resealed(func(b []byte) []byte { return bytes.Replace(b, []byte(`"series":3`), []byte(`"series":4`), 1) }),
		"a point too few":  resealed(func(b []byte) []byte { return bytes.Replace(b, []byte(`"histograms":0`), []byte(`"histograms":1`), 1) }),
		"closed connection": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := recorded(next, r)
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
				panic(http.ErrAbortHandler)
			})
		},
		"answer of another piece": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var p map[string]any
				if json.NewDecoder(r.Body).Decode(&p) == nil {
					p["from"], p["upto"] = p["start"], int64(p["start"].(float64)+3*p["step"].(float64))
					b, _ := json.Marshal(p)
					r.Body = io.NopCloser(bytes.NewReader(b))
				}
				next.ServeHTTP(w, r)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := startWorker(t, store, query.Settings{}, around)
			both := dividing(t, store, bad, good)
			laketest.Identical(t, want, both.Exec(t.Context(), dividedQuery), name)
			pieces := piecesOf(both)
			require.NotZero(t, pieces["failed"], pieces)
			require.Equal(t, 6, pieces["ok"]+pieces["local"], pieces)
			alone := dividing(t, store, bad)
			laketest.Identical(t, want, alone.Exec(t.Context(), dividedQuery), name)
			pieces = piecesOf(alone)
			require.NotZero(t, pieces["local"], pieces)
			require.Zero(t, alone.Counted("promlake_query_pieces_in_flight"))
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		srv := httptest.NewServer(http.NotFoundHandler())
		srv.Close()
		alone := dividing(t, store, strings.TrimPrefix(srv.URL, "http://"))
		laketest.Identical(t, want, alone.Exec(t.Context(), dividedQuery), "")
		require.Equal(t, map[string]int{"failed": 3, "local": 3}, piecesOf(alone))
	})
	t.Run("a dead worker is asked last", func(t *testing.T) {
		srv := httptest.NewServer(http.NotFoundHandler())
		srv.Close()
		both := dividing(t, store, strings.TrimPrefix(srv.URL, "http://"), good)
		for n := range 3 {
			laketest.Identical(t, want, both.Exec(t.Context(), dividedQuery), n)
		}
		pieces := piecesOf(both)
		require.Equal(t, 18, pieces["ok"], pieces)
		require.Less(t, pieces["failed"], 18, "each piece asks it at most once, and most do not")
	})
	t.Run("slow", func(t *testing.T) {
		asked, free := make(chan struct{}, 100), make(chan struct{})
		t.Cleanup(func() { close(free) })
		var first atomic.Bool
		slow := startWorker(t, store, query.Settings{}, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if first.Swap(true) {
					next.ServeHTTP(w, r)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				asked <- struct{}{}
				select {
				case <-free:
				case <-r.Context().Done():
				}
			})
		})
		both := dividing(t, store, slow, good)
		laketest.Identical(t, want, both.Exec(t.Context(), dividedQuery), "")
		require.Len(t, asked, 1)
		require.Equal(t, map[string]int{"ok": 6, "slow": 1}, piecesOf(both))
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stuck := startWorker(t, store, query.Settings{}, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				cancel()
				<-r.Context().Done()
			})
		})
		res := dividing(t, store, stuck).Exec(ctx, dividedQuery)
		require.ErrorContains(t, res.Err, "query was canceled")
	})
}

// TestDividedQueriesOverAFunction: invocations of a function are workers. Those that fail, are
// refused or lie are repeated, and the coordinator evaluates their pieces after that. What is too
// large for a payload is halved.
func TestDividedQueriesOverAFunction(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, query.Settings{})
	plain.Write(tenant.Default, laketest.PushRows())
	want := plain.Exec(t.Context(), dividedQuery)
	handler := handlerOf(t, store, query.Settings{})
	whole := lambdatest.Handler(handler, math.MaxInt)
	over := func(t *testing.T, invoke lambdatest.Invoke) *laketest.Lake {
		lambdatest.StartAPI(t, invoke)
		return laketest.New(t, store, query.Settings{Workers: []string{"lambda:f"}, DivideInvocations: 4, DivideBytes: 1, DivideWindows: -1})
	}
	fails := &emulator.FunctionError{Type: emulator.ErrorExit, Message: "Runtime exited: signal: killed"}
	always := func(answer string, err error) lambdatest.Invoke {
		return func(context.Context, []byte) ([]byte, error) { return []byte(answer), err }
	}
	odd := func(other lambdatest.Invoke) lambdatest.Invoke { // every second invocation is of another kind
		var n atomic.Int64
		return func(ctx context.Context, event []byte) ([]byte, error) {
			if n.Add(1)%2 == 1 {
				return other(ctx, event)
			}
			return whole(ctx, event)
		}
	}
	changed := func(change func(body string) string) lambdatest.Invoke {
		return func(ctx context.Context, event []byte) ([]byte, error) {
			out, err := whole(ctx, event)
			var a events.APIGatewayV2HTTPResponse
			require.NoError(t, errors.Join(err, json.Unmarshal(out, &a)))
			a.Body = change(a.Body)
			return json.Marshal(a)
		}
	}
	for name, tc := range map[string]struct {
		invoke lambdatest.Invoke
		pieces map[string]int
	}{
		"as it should":        {whole, map[string]int{"ok": 4}},
		"killed":              {always("", fails), map[string]int{"failed": 12, "local": 4}},
		"throttled":           {always("", errors.New("throttled")), map[string]int{"failed": 12, "local": 4}},
		"no answer":           {always("null", nil), map[string]int{"failed": 12, "local": 4}},
		"another answer":      {always(`{"statusCode":200,"body":"ok"}`, nil), map[string]int{"failed": 12, "local": 4}},
		"another status":      {always(`{"statusCode":403,"body":"no"}`, nil), map[string]int{"failed": 12, "local": 4}},
		"half a JSON":         {always(`{"statusCode":200,"body":"`, nil), map[string]int{"failed": 12, "local": 4}},
		"half an answer":      {changed(func(b string) string { return b[:len(b)/8*4] }), map[string]int{"failed": 12, "local": 4}},
		"no base64":           {changed(func(b string) string { return "*" + b }), map[string]int{"failed": 12, "local": 4}},
		"killed, by turns":    {odd(always("", fails)), nil},
		"throttled, by turns": {odd(always("", errors.New("throttled"))), nil},
		"lies, by turns":      {odd(changed(func(b string) string { return b[:len(b)/8*4] })), nil},
		"quarters fit":        {lambdatest.Handler(handler, 3000), map[string]int{"large": 12, "ok": 16}},
		"only the head fits":  {lambdatest.Handler(handler, 100), map[string]int{"large": 4 * 31, "local": 4 * 16}},
	} {
		t.Run(name, func(t *testing.T) {
			l := over(t, tc.invoke)
			laketest.Identical(t, want, l.Exec(t.Context(), dividedQuery), name)
			pieces := piecesOf(l)
			if tc.pieces != nil {
				require.Equal(t, tc.pieces, pieces)
			} else {
				require.Equal(t, 4, pieces["ok"]+pieces["local"], pieces)
				require.Positive(t, pieces["failed"], pieces)
			}
			require.Zero(t, l.Counted("promlake_query_pieces_in_flight"))
		})
	}
	t.Run("too long a list of objects", func(t *testing.T) {
		q := dividedQuery
		q.Text += " #" + strings.Repeat("x", 5<<20) // as much in each piece
		q.Start = q.End.Add(-15 * q.Step)
		l := over(t, whole)
		laketest.Identical(t, plain.Exec(t.Context(), q), l.Exec(t.Context(), q), "")
		require.Equal(t, map[string]int{"large": 10, "local": 7}, piecesOf(l))
	})
	t.Run("slow", func(t *testing.T) {
		var n, left atomic.Int64
		l := over(t, func(ctx context.Context, event []byte) ([]byte, error) {
			if n.Add(1) == 1 {
				<-ctx.Done()
				left.Add(1)
			}
			return whole(ctx, event)
		})
		laketest.Identical(t, want, l.Exec(t.Context(), dividedQuery), "")
		require.Equal(t, map[string]int{"ok": 4, "slow": 1}, piecesOf(l))
		require.Eventually(t, func() bool { return left.Load() == 1 }, 2*time.Minute, time.Millisecond, "its sender has gone")
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := over(t, func(ctx context.Context, _ []byte) ([]byte, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		})
		require.ErrorContains(t, l.Exec(ctx, dividedQuery).Err, "query was canceled")
		require.Empty(t, piecesOf(l))
	})
	t.Run("a tenant's turns", func(t *testing.T) {
		var now, most atomic.Int64
		l := over(t, func(ctx context.Context, event []byte) ([]byte, error) {
			defer now.Add(-1)
			for n := now.Add(1); ; {
				if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
					return whole(ctx, event)
				}
			}
		})
		var g errgroup.Group
		for range 5 {
			g.Go(func() error { return l.Exec(t.Context(), dividedQuery).Err })
		}
		require.NoError(t, g.Wait())
		require.LessOrEqual(t, most.Load(), int64(4))
		require.Equal(t, map[string]int{"ok": 20}, piecesOf(l))
	})
}

// TestDividedQueriesAreKept: the steps before and behind those whose answers are kept are divided.
func TestDividedQueriesAreKept(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, query.Settings{})
	plain.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, laketest.PushRows())
	l := laketest.New(t, store, query.Settings{
		Workers: []string{startWorker(t, store, query.Settings{}, nil)}, DivideBytes: 1, DivideWindows: -1, KeptAnswersSamples: 1, KeptWindow: 30 * time.Minute,
	})
	q := dividedQuery
	q.Text = `sum by (job) (m1)`
	for n := range 3 {
		laketest.Identical(t, plain.Exec(t.Context(), q), l.Exec(t.Context(), q), n)
		l.WaitKept(t.Context())
		q.Start = q.Start.Add(time.Minute)
	}
	require.Equal(t, 3+2*3*2, piecesOf(l)["ok"], "three slices of the whole, and of the steps before and behind what is kept")
	require.Positive(t, l.Counted("promlake_query_kept_answers_total", "hit"))
}

// TestDividedQueriesOnNewObjects: if objects are gone at a worker, the query is evaluated again on a
// new snapshot; if they still are, it fails.
func TestDividedQueriesOnNewObjects(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, query.Settings{})
	plain.Write(tenant.Default, laketest.PushRows())
	want := plain.Exec(t.Context(), dividedQuery)
	var gone atomic.Bool
	once := startWorker(t, store, query.Settings{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !gone.Swap(true) {
				http.Error(w, "gone", http.StatusGone)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	divided := dividing(t, store, once)
	laketest.Identical(t, want, divided.Exec(t.Context(), dividedQuery), "")
	require.Equal(t, 1.0, divided.Counted("promlake_query_replans_total"))
	require.Equal(t, 1, piecesOf(divided)["whole"])
	require.GreaterOrEqual(t, piecesOf(divided)["ok"], 3)

	other := laketest.NewDir(t) // it has the manifest and no segment
	require.NoError(t, os.CopyFS(other.Path, os.DirFS(store.Path)))
	require.NoError(t, filepath.WalkDir(other.Path, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".parquet") {
			return os.Remove(path)
		}
		return err
	}))
	for _, s := range []query.Settings{{}, laketest.PushAll, laketest.PushNone} {
		divided = dividing(t, store, startWorker(t, other, s, nil))
		require.ErrorContains(t, divided.Exec(t.Context(), dividedQuery).Err, "objects vanished twice during a read")
		require.Zero(t, piecesOf(divided)["ok"]+piecesOf(divided)["local"])
	}
}

// TestPiecesAreChecked: a worker refuses pieces of other tenants, versions and settings, and what is
// no piece.
func TestPiecesAreChecked(t *testing.T) {
	store := laketest.NewDir(t)
	laketest.New(t, store, query.Settings{}).Write(tenant.Default, laketest.PushRows())
	var piece []byte
	worker := startWorker(t, store, query.Settings{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("X-Test") == "" {
				piece = body
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		})
	})
	require.NoError(t, dividing(t, store, worker).Exec(t.Context(), dividedQuery).Err)
	send := func(tenantID string, body []byte) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+worker+"/api/v1/piece", bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("X-Test", "1")
		req.Header.Set(tenant.Header, tenantID)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(text)
	}
	code, _ := send(tenant.Default, piece)
	require.Equal(t, http.StatusOK, code)
	code, text := send("other", piece)
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, text, `the piece is of tenant \"anonymous\", the request of \"other\"`)
	for change, message := range map[string]string{
		`"version":1>"version":2`:                  "version 2, this process knows 1",
		`"tenant">"tenants"`:                       `unknown field \"tenants\"`,
		`sum by (job>sum by (job) (`:               "parse error",
		`"options":{>"options":{"replica":"x"`:     "the settings of this process differ",
		`"options":{>"options":{"failover":"soon"`: "cannot unmarshal",
		`"step":60000>"step":0`:                    "step: want a positive duration in ms, got 0",
		`"step":60000>"step":1`:                    "start and end: want at most 11000 steps",
		`"from":>"from":1`:                         "from and upto: want steps of the query",
		`"lookback":300000>"lookback":-1`:          "lookback: want a positive duration",
		`"timeout":>"timeout":-`:                   "timeout: want a positive duration",
		`"max_bytes":>"max_bytes":-`:               "max_bytes: want a positive number",
		`{>`:                                       "read a piece",
	} {
		from, to, _ := strings.Cut(change, ">")
		code, text := send(tenant.Default, bytes.Replace(piece, []byte(from), []byte(to), 1))
		require.Equal(t, http.StatusBadRequest, code, "%s: %s", change, text)
		require.Contains(t, text, message, change)
	}
	code, text = send(tenant.Default, slices.Concat(piece, bytes.Repeat([]byte(" "), 9<<20)))
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, text, "exceed the limit of 8388608")
	code, text = send(tenant.Default, bytes.Replace(piece, []byte(`rate(m1[5m])`), []byte(strings.Repeat("(", 5000)+"m1"+strings.Repeat(")", 5000)), 1))
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, text, "--query.max-expression-depth")
}

// TestDividedQueriesHaveLimits: the answers of workers count in the samples and the bytes of a query,
// and in its statistics.
func TestDividedQueriesHaveLimits(t *testing.T) {
	store := laketest.NewDir(t)
	laketest.New(t, store, query.Settings{}).Write(tenant.Default, laketest.PushRows())
	worker := startWorker(t, store, query.Settings{}, nil)
	settings := query.Settings{Workers: []string{worker}, DivideBytes: 1, DivideWindows: -1, MaxFetchedBytes: 1000}
	q := dividedQuery
	q.Text = "m1"
	require.ErrorContains(t, laketest.New(t, store, settings).Exec(t.Context(), q).Err, "--query.max-fetched-bytes")
	settings.MaxFetchedBytes, settings.MaxSamples = 0, 700
	require.ErrorContains(t, laketest.New(t, store, settings).Exec(t.Context(), q).Err, "query processing would load too many samples into memory")

	l := dividing(t, store, worker)
	read := &request.Stats{}
	ctx := request.WithStats(t.Context(), read)
	run := func(l *laketest.Lake) *stats.Statistics {
		up, err := l.Engine().NewRangeQuery(ctx, l, promql.NewPrometheusQueryOpts(true, 0), q.Text, q.Start, q.End, q.Step)
		require.NoError(t, err)
		defer up.Close()
		require.NoError(t, up.Exec(ctx).Err)
		return up.Stats()
	}
	got := run(l)
	require.Positive(t, read.Totals().Bytes.Read)
	want := run(laketest.New(t, store, query.Settings{}))
	require.Equal(t, want.Samples.TotalSamples, got.Samples.TotalSamples)
	require.Equal(t, want.Samples.TotalSamplesPerStep, got.Samples.TotalSamplesPerStep)
}

// TestDividedQueriesOverDamagedObjects: a worker never leaves out a damaged object, whatever its
// settings. The process that divides the query decides: it fails, or answers with a warning.
func TestDividedQueriesOverDamagedObjects(t *testing.T) {
	store := laketest.NewDir(t)
	fresh := func(partial bool) *laketest.Lake {
		return laketest.New(t, store, query.Settings{PartialResponse: partial})
	}
	l := fresh(false)
	var rows []segment.Row
	for i := range 4 {
		r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i))}
		for at := int64(0); at < 7_200_000; at += 60_000 {
			r.Floats = append(r.Floats, segment.Float{T: at, V: float64(at)})
		}
		rows = append(rows, r)
	}
	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)[0]
	damageColumn(t, store, b, 2)
	q := laketest.Query{Text: "m", Start: time.UnixMilli(0), End: time.UnixMilli(7_200_000), Step: time.Minute}
	worker := startWorker(t, store, query.Settings{PartialResponse: true}, nil)
	for _, partial := range []bool{false, true} {
		want := fresh(partial).Exec(t.Context(), q)
		divided := laketest.New(t, store, query.Settings{PartialResponse: partial, Workers: []string{worker}, DivideBytes: 1, DivideWindows: -1})
		got := divided.Exec(t.Context(), q)
		if partial {
			laketest.Identical(t, want, got, "")
			require.Len(t, got.Warnings, 1)
		} else {
			require.Error(t, want.Err)
			require.EqualError(t, got.Err, want.Err.Error())
		}
		require.Positive(t, piecesOf(divided)["whole"], piecesOf(divided))
	}
}
