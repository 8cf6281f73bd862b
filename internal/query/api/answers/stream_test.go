package answers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/httputil"
	"github.com/prometheus/prometheus/util/stats"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"
)

// matrixOf returns series of points with random values.
func matrixOf(series, points int) promql.Matrix {
	r := rand.New(rand.NewPCG(7, uint64(series)))
	m := make(promql.Matrix, series)
	for i := range m {
		m[i].Metric = labels.FromStrings("__name__", "m", "n", fmt.Sprint(i))
		for k := range points {
			m[i].Floats = append(m[i].Floats, promql.FPoint{T: int64(k) * 15_000, F: r.Float64() * 1000})
		}
	}
	return m
}

// responded writes an answer as upstream's API does, with the codec.
func responded(w http.ResponseWriter, r *http.Request, m promql.Matrix) error {
	render := Lending(func(context.Context, *stats.Statistics, string) stats.QueryStats { return nil })
	data := &v1.QueryData{ResultType: parser.ValueTypeMatrix, Result: m, Stats: render(r.Context(), nil, "")}
	body, err := Codec{}.Encode(&v1.Response{Status: "success", Data: data})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", v1.JSONCodec{}.ContentType().String())
	w.WriteHeader(http.StatusOK)
	_, err = w.Write(body)
	return err
}

// TestStreamedAnswersAreUpstreams: large answers are sent in parts, except where upstream compresses
// them, and small ones at once. Their bytes are upstream's.
func TestStreamedAnswersAreUpstreams(t *testing.T) {
	for _, c := range []struct {
		series, points int
		parts          bool
	}{{1, 10, false}, {100, 600, false}, {100, 700, true}, {3, 60_000, true}, {1, 70_000, true}, {70_000, 1, true}} {
		m := matrixOf(c.series, c.points)
		want, err := v1.JSONCodec{}.Encode(&v1.Response{Status: "success", Data: &v1.QueryData{ResultType: parser.ValueTypeMatrix, Result: m}})
		require.NoError(t, err)
		upstream := httputil.CompressionHandler{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := responded(w, r, m); err != nil {
				panic(err)
			}
		})}
		srv := httptest.NewServer(Handler(upstream))
		defer srv.Close()
		for _, encoding := range []string{"identity", "gzip", "deflate"} {
			for range 2 { // the second one in the memory of the first
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
				require.NoError(t, err)
				req.Header.Set(acceptEncoding, encoding)
				resp, err := http.DefaultClient.Do(req)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, resp.StatusCode)
				require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
				if encoding == "identity" {
					require.Equal(t, c.parts, resp.ContentLength < 0, "%d points", c.series*c.points)
				}
				got, err := unzipped(resp.Header, resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, string(want), string(got), encoding)
			}
		}
	}
}

// gone is a client that reads one part of an answer.
type gone struct {
	*httptest.ResponseRecorder
	parts int
}

var errGone = errors.New("the client went away")

func (g *gone) Write(p []byte) (int, error) {
	if g.parts++; g.parts > 1 {
		return 0, errGone
	}
	return g.ResponseRecorder.Write(p)
}

// TestStreamEndsWithItsClient: once a part could not be sent, the rest of a large answer is not
// encoded.
func TestStreamEndsWithItsClient(t *testing.T) {
	client := &gone{ResponseRecorder: httptest.NewRecorder()}
	handler := Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.ErrorIs(t, responded(w, r, matrixOf(100, 10_000)), errGone)
	}))
	handler.ServeHTTP(client, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.LessOrEqual(t, client.parts, 3, "one that was read, one that was not, and the end")
}

// TestStreamIsCutOff: an answer of which parts are sent has no error of its own.
func TestStreamIsCutOff(t *testing.T) {
	s := sender{ResponseWriter: httptest.NewRecorder()}
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { _ = s.sendParts([]*scratch{{}}, []error{errGone}) })
}
