package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/timeparam"
)

// asOfParam asks for the data as it stood at a time: RFC 3339 or seconds, like upstream's times.
const asOfParam = "as_of"

// withAsOf puts the time that a request asks for into its context, where the storage looks for it.
func (s *server) withAsOf(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, r := formValue(r, asOfParam)
		if v == "" {
			next.ServeHTTP(w, r)
			return
		}
		t, err := timeparam.Parse(v)
		if err != nil {
			s.respondError(w, r, badData, fmt.Errorf("invalid parameter %q: %w", asOfParam, err))
			return
		}
		next.ServeHTTP(w, r.WithContext(request.WithAsOf(r.Context(), t)))
	})
}

// formValue returns a parameter of a request, and the request to go on with: as if nobody had read
// its form.
func formValue(r *http.Request, name string) (string, *http.Request) {
	form, next := peekForm(r)
	if vs := form[name]; len(vs) > 0 {
		return vs[0], next
	}
	return "", next
}

// statsAll asks for all statistics of a query, ours among them.
const statsAll = "all"

// evaluating makes the handler of a route that evaluates PromQL. Upstream checks the parameter
// stats only where it renders the statistics itself, so a second API of its, with our renderer, is
// asked for stats=all alone.
func (s *server) evaluating(path string) choice {
	return func(upstream http.Handler) http.Handler {
		return s.withAsOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, r := formValue(r, "stats")
			if v != statsAll {
				upstream.ServeHTTP(w, r)
				return
			}
			handlers, err := s.withStats()
			if err != nil {
				s.respondError(w, r, failureOf(err), err)
				return
			}
			handlers[path].ServeHTTP(w, r.WithContext(request.WithStats(r.Context(), &request.Stats{})))
		}))
	}
}

// statsHandlers returns the handlers of an upstream API that renders statistics with renderStats,
// by path.
func (s *server) statsHandlers() (map[string]http.Handler, error) {
	api, err := s.upstream(nil, renderStats)
	if err != nil {
		return nil, err
	}
	handlers := map[string]http.Handler{}
	api.Register(route.New().WithInstrumentation(func(path string, h http.HandlerFunc) http.HandlerFunc {
		handlers[path] = h
		return h
	}))
	return handlers, nil
}

// queryStats are upstream's statistics of a query, and what the storage read for it.
type queryStats struct {
	stats.BuiltinStats
	Storage request.Totals `json:"storage"`
}

// Builtin implements stats.QueryStats.
func (s *queryStats) Builtin() stats.BuiltinStats { return s.BuiltinStats }

// renderStats adds to upstream's statistics of a query what the storage read, if it said so.
func renderStats(ctx context.Context, s *stats.Statistics, _ string) stats.QueryStats {
	builtin := stats.NewQueryStats(s)
	st := request.From(ctx).Stats
	if st == nil || st.Totals() == (request.Totals{}) {
		return builtin
	}
	return &queryStats{builtin.Builtin(), st.Totals()}
}
