package api_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api"
)

func exported(t *testing.T, h http.Handler, path string, params url.Values) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+"?"+params.Encode(), nil))
	return w
}

func exportHandler(t *testing.T, b api.Backend) http.Handler {
	t.Helper()
	h, err := api.New(testSettings(), b, nil, time.Now, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	return h
}

func exportPoints() []point {
	ls := labels.FromStrings
	return []point{
		{labels: ls("__name__", "odd"), t: 1000, v: math.NaN()},
		{labels: ls("__name__", "odd"), t: 2000, v: math.Inf(1)},
		{labels: ls("__name__", "odd"), t: 3000, v: math.Inf(-1)},
		{labels: ls("__name__", "odd"), t: 4000, v: math.Copysign(0, -1)},
		{labels: ls("__name__", "odd"), t: 5000, v: 1e300},
		{labels: ls("__name__", "odd"), t: 6000, v: math.Float64frombits(value.StaleNaN)},
		{labels: ls("__name__", "up", "job", "a,\"b\"\n\x7f<ü"), t: 1000, v: 1},
		{labels: ls("__name__", "up", "job", "a,\"b\"\n\x7f<ü"), t: 1500, v: -2.5},
		{labels: ls("__name__", "up", "job", "c"), t: 1500, v: 3},
		{labels: ls("__name__", "native"), t: 1000, h: tsdbutil.GenerateTestHistogram(1)},
	}
}

func TestExportJSON(t *testing.T) {
	b := newEmptyBackend(t)
	b.append(t, exportPoints()...)
	h := exportHandler(t, b)
	const (
		odd = `{"metric":{"__name__":"odd"},"values":["NaN","Infinity","-Infinity",-0,1e+300,null],"timestamps":[1000,2000,3000,4000,5000,6000]}` + "\n"
		upA = `{"metric":{"__name__":"up","job":"a,\"b\"\n` + "\x7f" + `<ü"},"values":[1,-2.5],"timestamps":[1000,1500]}` + "\n"
		upC = `{"metric":{"__name__":"up","job":"c"},"values":[3],"timestamps":[1500]}` + "\n"
	)
	for name, tc := range map[string]struct {
		params  url.Values
		want    string
		skipped string
	}{
		"all":                   {url.Values{"match[]": {`{__name__=~".+"}`}}, odd + upA + upC, "1"},
		"several":               {url.Values{"match[]": {`up{job="c"}`, "up", "nothing"}}, upA + upC, "0"},
		"a range":               {url.Values{"match[]": {"up"}, "start": {"1.001"}, "end": {"1.5"}}, strings.Replace(upA, `[1,-2.5],"timestamps":[1000,1500]`, `[-2.5],"timestamps":[1500]`, 1) + upC, "0"},
		"nothing":               {url.Values{"match[]": {"nothing"}}, "", "0"},
		"VictoriaMetrics' name": {url.Values{"match": {`up{job="c"}`}}, upC, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, prefix := range []string{"", "/prometheus"} {
				w := exported(t, h, prefix+"/api/v1/export", tc.params)
				require.Equal(t, http.StatusOK, w.Code, w.Body)
				require.Equal(t, tc.want, w.Body.String())
				require.Equal(t, tc.skipped, w.Result().Trailer.Get("X-Promlake-Histograms-Skipped"))
				require.Equal(t, "application/stream+json; charset=utf-8", w.Header().Get("Content-Type"))
			}
		})
	}
}

func TestExportCSV(t *testing.T) {
	b := newEmptyBackend(t)
	b.append(t, exportPoints()...)
	w := exported(t, exportHandler(t, b), "/api/v1/export/csv", url.Values{
		"match[]": {"up", "odd"}, "format": {"__timestamp__:unix_s,job,__value__,__name__,missing,__timestamp__:rfc3339,__timestamp__"},
	})
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, "text/csv; charset=utf-8", w.Header().Get("Content-Type"))
	got, err := csv.NewReader(w.Body).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"1", "", "NaN", "odd", "", "1970-01-01T00:00:01Z", "1000"},
		{"2", "", "+Inf", "odd", "", "1970-01-01T00:00:02Z", "2000"},
		{"3", "", "-Inf", "odd", "", "1970-01-01T00:00:03Z", "3000"},
		{"4", "", "-0", "odd", "", "1970-01-01T00:00:04Z", "4000"},
		{"5", "", "1e+300", "odd", "", "1970-01-01T00:00:05Z", "5000"},
		{"1", "a,\"b\"\n\x7f<ü", "1", "up", "", "1970-01-01T00:00:01Z", "1000"},
		{"1.5", "a,\"b\"\n\x7f<ü", "-2.5", "up", "", "1970-01-01T00:00:01Z", "1500"},
		{"1.5", "c", "3", "up", "", "1970-01-01T00:00:01Z", "1500"},
	}, got)
}

func TestExportRefused(t *testing.T) {
	h := exportHandler(t, newEmptyBackend(t))
	for _, tc := range []struct {
		path, params, want string
	}{
		{"/api/v1/export", "", "no match[] parameter provided"},
		{"/api/v1/export", "match[]={}", "no match[] parameter provided"},
		{"/api/v1/export", "match[]=up{", "parse error"},
		{"/api/v1/export", "match[]=up&start=x", `invalid parameter \"start\": cannot parse`},
		{"/api/v1/export", "match[]=up&start=2&end=1", "end timestamp must not be before start time"},
		{"/api/v1/export/csv", "match[]=up", `invalid parameter \"format\": want columns`},
		{"/api/v1/export/csv", "match[]=up&format=a,,b", "a column has no name"},
		{"/api/v1/export/csv", "match[]=up&format=__timestamp__:noon", "is not one of unix_s"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path+"?"+tc.params, nil))
		require.Equal(t, http.StatusBadRequest, w.Code, tc)
		require.Contains(t, w.Body.String(), tc.want, tc)
	}
}

// counted is a backend that claims a number of samples for each ms of a range, and records the
// ranges that are read.
type counted struct {
	*tsdbBackend
	from, to int64 // ms, in which there are samples
	per      int64

	mu   sync.Mutex
	read [][2]int64
	fail error // after the first read
}

func (c *counted) Count(_ context.Context, _ [][]*labels.Matcher, mint, maxt int64) (series, samples, bytes int64, err error) {
	return 1, c.per * max(0, min(maxt, c.to)-max(mint, c.from)+1), 0, nil
}

func (c *counted) Querier(mint, maxt int64) (storage.Querier, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.read) > 0 && c.fail != nil {
		return nil, c.fail
	}
	c.read = append(c.read, [2]int64{mint, maxt})
	return c.tsdbBackend.Querier(mint, maxt)
}

// TestExportInPieces: a range with many samples is read in pieces that cover it once, in order, and
// have few samples each.
func TestExportInPieces(t *testing.T) {
	const begin, end = 1_700_000_000_000, 1_700_000_000_000 + 30*86_400_000
	c := &counted{tsdbBackend: newEmptyBackend(t), from: begin, to: end, per: 1}
	w := exported(t, exportHandler(t, c), "/api/v1/export", url.Values{"match[]": {"up"}})
	require.Equal(t, http.StatusOK, w.Code)
	require.Greater(t, len(c.read), 1000)
	require.LessOrEqual(t, c.read[0][0], int64(begin))
	require.GreaterOrEqual(t, c.read[len(c.read)-1][1], int64(end))
	for i, r := range c.read {
		_, n, _, _ := c.Count(t.Context(), nil, r[0], r[1])
		require.LessOrEqual(t, n, int64(1<<20))
		if i > 0 {
			require.Equal(t, c.read[i-1][1]+1, r[0])
		}
	}
}

// TestExportFails: before the first byte, a failure has a status; afterwards it aborts the answer.
func TestExportFails(t *testing.T) {
	c := &counted{tsdbBackend: newEmptyBackend(t), to: 3 << 20, per: 1, fail: errors.New("store is down")}
	app := c.Appender(t.Context())
	for i := range int64(9000) {
		_, err := app.Append(0, labels.FromStrings("__name__", "up", "a", strings.Repeat("x", 100)), i, float64(i)+0.123456789)
		require.NoError(t, err)
	}
	require.NoError(t, app.Commit())
	w := exported(t, exportHandler(t, c), "/api/v1/export", url.Values{"match[]": {"nothing"}})
	require.Equal(t, http.StatusInternalServerError, w.Code)
	c.read = nil
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		exported(t, exportHandler(t, c), "/api/v1/export", url.Values{"match[]": {"up"}})
	})
}

// TestExportOfLongSeries: a series with many samples has several lines.
func TestExportOfLongSeries(t *testing.T) {
	b := newEmptyBackend(t)
	app := b.Appender(t.Context())
	for i := range int64(25_000) {
		_, err := app.Append(0, labels.FromStrings("__name__", "up"), i, float64(i))
		require.NoError(t, err)
	}
	require.NoError(t, app.Commit())
	w := exported(t, exportHandler(t, b), "/api/v1/export", url.Values{"match[]": {"up"}})
	lines := strings.SplitAfter(w.Body.String(), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[2], fmt.Sprintf(`"values":[%d,`, 20_000))
	require.Contains(t, lines[2], strconv.Itoa(24_999)+"]}\n")
}
