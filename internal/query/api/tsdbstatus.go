package api

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/tsdb/index"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/api/weights"
)

// tsdbStatus answers /api/v1/status/tsdb with the tenant's cardinalities, as upstream does if the
// request asks for nothing that upstream does not know. The number of chunks is 0: Promlake has
// none.
func (s *server) tsdbStatus(r *http.Request) (any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, respond.BadRequest(fmt.Sprintf("error parsing form values: %s", err))
	}
	if weights.Extends(r) {
		return s.weights.Explore(r)
	}
	limit, err := statsLimit(r)
	if err != nil {
		return nil, err
	}
	st, err := s.backend.Stats(r.Context(), limit)
	if err != nil {
		return nil, err
	}
	postings := st.IndexPostingStats
	if postings == nil {
		postings = &index.PostingsStats{}
	}
	return v1.TSDBStatus{
		HeadStats: v1.HeadStats{
			NumSeries:     st.NumSeries,
			NumLabelPairs: postings.NumLabelPairs,
			MinTime:       st.MinTime,
			MaxTime:       st.MaxTime,
		},
		SeriesCountByMetricName:     v1.TSDBStatsFromIndexStats(postings.CardinalityMetricsStats),
		LabelValueCountByLabelName:  v1.TSDBStatsFromIndexStats(postings.CardinalityLabelStats),
		MemoryInBytesByLabelName:    v1.TSDBStatsFromIndexStats(postings.LabelValueStats),
		SeriesCountByLabelValuePair: v1.TSDBStatsFromIndexStats(postings.LabelValuePairsStats),
	}, nil
}

func statsLimit(r *http.Request) (int, error) {
	v := r.FormValue("limit")
	if v == "" {
		return weights.DefaultRows, nil
	}
	limit, err := strconv.Atoi(v)
	switch {
	case err != nil || limit < 1:
		return 0, respond.BadRequest("limit must be a positive number")
	case limit > weights.MaxRows:
		return 0, respond.BadRequest(fmt.Sprintf("limit must not exceed %d", weights.MaxRows))
	}
	return limit, nil
}
