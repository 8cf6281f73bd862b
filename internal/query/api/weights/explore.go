package weights

import (
	"net/http"
	"slices"

	"github.com/prometheus/common/model"
)

// tsdbRow is a row of a list of the extended status.
type tsdbRow struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	weight
}

// tsdbReport is the extended answer of /api/v1/status/tsdb: Prometheus' lists and VictoriaMetrics'.
type tsdbReport struct {
	HeadStats                    headStats `json:"headStats"`
	TotalSeries                  int64     `json:"totalSeries"`
	TotalLabelValuePairs         int64     `json:"totalLabelValuePairs"`
	Total                        weight    `json:"total"`
	SeriesCountByMetricName      []tsdbRow `json:"seriesCountByMetricName"`
	SeriesCountByLabelName       []tsdbRow `json:"seriesCountByLabelName"`
	SeriesCountByFocusLabelValue []tsdbRow `json:"seriesCountByFocusLabelValue"`
	SeriesCountByLabelValuePair  []tsdbRow `json:"seriesCountByLabelValuePair"`
	LabelValueCountByLabelName   []tsdbRow `json:"labelValueCountByLabelName"`
	MemoryInBytesByLabelName     []tsdbRow `json:"memoryInBytesByLabelName"`
}

// headStats is upstream's, without chunks, and with the range that was counted.
type headStats struct {
	NumSeries     int64 `json:"numSeries"`
	NumLabelPairs int64 `json:"numLabelPairs"`
	ChunkCount    int64 `json:"chunkCount"`
	MinTime       int64 `json:"minTime"`
	MaxTime       int64 `json:"maxTime"`
}

// Rows of each list of an answer.
const (
	DefaultRows = 10
	MaxRows     = 10000 // upstream's
)

// explored are the parameters that ask for the extended answer.
var explored = []string{"topN", "focusLabel", "match[]", "date", "start", "end"}

// Extends reports whether a request to /api/v1/status/tsdb asks for the extended answer. The form
// of r is parsed.
func Extends(r *http.Request) bool { return slices.ContainsFunc(explored, r.Form.Has) }

// Explore answers /api/v1/status/tsdb with the cardinalities of the selected series in a range.
func (s Server) Explore(r *http.Request) (any, error) {
	a, err := s.selection(r, r.Form["match[]"])
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit", DefaultRows, MaxRows)
	if err != nil {
		return nil, err
	}
	top, err := number(r, "topN", limit, MaxRows)
	if err != nil {
		return nil, err
	}
	c, err := s.count(r, a)
	if err != nil {
		return nil, err
	}
	list := func(rows []Row, by func(*Row) int64) []tsdbRow {
		out := []tsdbRow{}
		for _, x := range Largest(rows, top, by) {
			out = append(out, tsdbRow{x.Name, by(&x), weightOf(x.Weight)})
		}
		return out
	}
	focus := []Row{}
	if name := r.Form.Get("focusLabel"); name != "" {
		focus = c.Values(name)
	}
	return tsdbReport{
		HeadStats:                    headStats{NumSeries: c.Total.Series, NumLabelPairs: c.Pairs(), MinTime: a.mint, MaxTime: a.maxt},
		TotalSeries:                  c.Total.Series,
		TotalLabelValuePairs:         c.Pairs(),
		Total:                        weightOf(c.Total),
		SeriesCountByMetricName:      list(c.Values(model.MetricNameLabel), BySeries),
		SeriesCountByLabelName:       list(c.Labels(), BySeries),
		SeriesCountByFocusLabelValue: list(focus, BySeries),
		SeriesCountByLabelValuePair:  list(c.PairRows(), BySeries),
		LabelValueCountByLabelName:   list(c.Labels(), ByValues),
		MemoryInBytesByLabelName:     list(c.Labels(), ByLength),
	}, nil
}
