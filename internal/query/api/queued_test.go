package api_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/request"
)

// turns is a Backend that records which requests had a turn among the queries, and when they left.
type turns struct {
	asker
	taken, left *int
	err         error
}

func (b turns) Run(ctx context.Context, fn func(context.Context) error) error {
	if b.err != nil {
		return b.err
	}
	*b.taken++
	r := request.From(ctx)
	r.Leave = func() { *b.left++ }
	return fn(request.With(ctx, r))
}

// TestReadsTakeTheirTurn: every route that reads, or works for long, waits for its turn among the
// queries, has given it back when it writes its answer, and reports that it waited in vain.
func TestReadsTakeTheirTurn(t *testing.T) {
	var taken, left int
	a := newAsker(t, new(string))
	a.weigher.tsdbBackend = newBackend(t)
	h := newHandler(t, testSettings(), turns{a, &taken, &left, nil})
	full := newHandler(t, testSettings(), turns{a, &taken, &left, promql.ErrQueryTimeout("query queue")})
	queued := 0
	for path, form := range expressionRoutes {
		if strings.Contains(path, "/query") && !strings.Contains(path, "exemplars") || strings.Contains(path, "buildinfo") || strings.Contains(path, "explain") || strings.Contains(path, "slices") {
			continue
		}
		taken, left = 0, 0
		target := path + "?" + strings.ReplaceAll(form, "%", "up")
		rec := get(t, h, target)
		require.Equal(t, http.StatusOK, rec.Code, path)
		require.Equal(t, 1, taken, path)
		require.Equal(t, rec.Body.Len() > 0, left > 0, path)
		rec = get(t, full, target)
		require.Equal(t, http.StatusServiceUnavailable, rec.Code, path)
		require.Contains(t, rec.Body.String(), "query timed out in query queue", path)
		queued++
	}
	for _, path := range []string{"/api/v1/metadata", "/api/v1/status/tsdb", "/api/v1/status/metric_names_stats"} {
		taken = 0
		require.Equal(t, http.StatusOK, get(t, h, path).Code, path)
		require.Equal(t, 1, taken, path)
		queued++
	}
	require.Greater(t, queued, 10)
	for _, path := range []string{"/api/v1/status/buildinfo", "/api/v1/rules", "/api/v1/targets"} {
		require.Equal(t, http.StatusOK, get(t, full, path).Code, "%s answers while all queries wait", path)
	}
}

// TestPrintingIsBounded: upstream's printer takes a time that grows with the cube of the depth.
func TestPrintingIsBounded(t *testing.T) {
	h := newHandler(t, testSettings(), withoutStorage(t))
	for path, sizes := range map[string][2]int{"format_query": {300, 950}, "parse_query": {900, 2500}} {
		for i, n := range sizes {
			rec := get(t, h, "/api/v1/"+path+"?query="+url.QueryEscape("m"+strings.Repeat(" or m"+strings.Repeat("x", 60), n)))
			if i == 0 {
				require.Equal(t, http.StatusOK, rec.Code)
				continue
			}
			require.Equal(t, http.StatusBadRequest, rec.Code)
			require.Contains(t, rec.Body.String(), "at most 536870912 are allowed")
		}
	}
}
