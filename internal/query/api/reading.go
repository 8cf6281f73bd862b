package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/util/stats"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/prom/timeparam"
	"github.com/promlake/promlake/internal/query/api/answers"
	"github.com/promlake/promlake/internal/query/api/guard"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/request"
)

// asOfParam requests the state of the data at a time: RFC 3339 or seconds, as in upstream's time
// parameters.
const asOfParam = "as_of"

// withAsOf puts the time of as_of into the request's context, where the storage reads it.
func (s *server) withAsOf(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, r := formValue(r, asOfParam)
		if v == "" {
			next.ServeHTTP(w, r)
			return
		}
		t, err := timeparam.Parse(v)
		if err != nil {
			s.respond.Error(w, r, respond.BadData, fmt.Errorf("invalid parameter %q: %w", asOfParam, err))
			return
		}
		next.ServeHTTP(w, r.WithContext(request.WithAsOf(r.Context(), t)))
	})
}

// reading returns the handler of a route that reads the storage and evaluates nothing.
func (s *server) reading(upstream http.Handler) http.Handler {
	return s.withAsOf(answers.Zipped(upstream))
}

// countingLabel counts a request for the values of a label, and lets upstream answer it.
func (s *server) countingLabel(upstream http.Handler) http.Handler {
	next := s.reading(upstream)
	if s.weights.Asker == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := route.Param(r.Context(), "name")
		if strings.HasPrefix(name, "U__") { // as upstream reads it
			name = model.UnescapeName(name, model.ValueEncodingEscaping)
		}
		s.weights.Asker.AskedForValues(r.Context(), name)
		next.ServeHTTP(w, r)
	})
}

// formValue returns a parameter of a request, and the request for its handler (guard.Form).
func formValue(r *http.Request, name string) (string, *http.Request) {
	form, next := guard.Form(r)
	return url.Values(form).Get(name), next
}

// Values of the parameter stats which upstream knows. Others are deprecated: they mean statsTrue,
// and get a warning.
const (
	statsTrue = "true"
	statsAll  = "all" // with those of Promlake
)

// evaluating returns the handler of a route that evaluates PromQL. Upstream warns of deprecated
// values of the parameter stats only if it has its own renderer, so these requests go to a second
// upstream API.
func (s *server) evaluating(path string) choice {
	return func(upstream http.Handler) http.Handler {
		answered := answers.Handler(upstream)
		return s.withAsOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			form, r := guard.Form(r)
			r, cancel, err := s.bounded(r, form)
			if err != nil {
				s.respond.Error(w, r, respond.BadData, err)
				return
			}
			defer cancel()
			if v := url.Values(form).Get("nocache"); v != "" && v != "0" && v != "false" {
				r = r.WithContext(request.WithNoCache(r.Context()))
			}
			switch url.Values(form).Get("stats") {
			case "", statsTrue:
				s.refusing(answered, w, r)
			case statsAll:
				s.refusing(answered, w, r.WithContext(request.WithStats(r.Context(), &request.Stats{})))
			default:
				s.refusing(s.deprecated()[path], w, r)
			}
		}))
	}
}

// queryStats is upstream's statistics of a query, and what the storage read for it.
type queryStats struct {
	stats.BuiltinStats
	Storage request.Totals `json:"storage"`
}

// Builtin implements stats.QueryStats.
func (s *queryStats) Builtin() stats.BuiltinStats { return s.BuiltinStats }

// renderStats renders statistics as upstream does. It adds what the storage read if the request
// records that, and anything was read.
func renderStats(ctx context.Context, s *stats.Statistics, param string) stats.QueryStats {
	builtin := v1.DefaultStatsRenderer(ctx, s, param)
	st := request.From(ctx).Stats
	if st == nil || st.Totals() == (request.Totals{}) {
		return builtin
	}
	return &queryStats{builtin.Builtin(), st.Totals()}
}
