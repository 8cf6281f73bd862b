package weights

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// Paths and limits of Mimir's cardinality API
// (https://grafana.com/docs/mimir/latest/references/http-api/#label-names-cardinality).
const (
	labelNamesPath   = "/cardinality/label_names"
	labelValuesPath  = "/cardinality/label_values"
	activeSeriesPath = "/cardinality/active_series"

	mimirRows    = 20
	maxMimirRows = 500
)

// mimirWeight is a row's weight in Mimir's style of names.
type mimirWeight struct {
	Samples int64   `json:"samples"`
	Bytes   int64   `json:"bytes"`
	Dollars float64 `json:"dollars_per_month"`
}

func mimirWeightOf(w Weight) mimirWeight { return mimirWeight(weightOf(w)) }

// labelNames is the answer of labelNamesPath.
type labelNames struct {
	ValuesTotal int64          `json:"label_values_count_total"`
	Names       int            `json:"label_names_count"`
	Cardinality []labelNameRow `json:"cardinality"`
}

type labelNameRow struct {
	Name   string `json:"label_name"`
	Values int64  `json:"label_values_count"`
	mimirWeight
}

// labelValues is the answer of labelValuesPath.
type labelValues struct {
	SeriesTotal int64         `json:"series_count_total"`
	Labels      []labelReport `json:"labels"`
}

type labelReport struct {
	Name        string          `json:"label_name"`
	Values      int64           `json:"label_values_count"`
	Series      int64           `json:"series_count"`
	Cardinality []labelValueRow `json:"cardinality"`
}

type labelValueRow struct {
	Value  string `json:"label_value"`
	Series int64  `json:"series_count"`
	mimirWeight
}

// mimirSelection reads the parameters that the paths have in common.
func (s Server) mimirSelection(r *http.Request) (a asked, limit int, err error) {
	if err := r.ParseForm(); err != nil {
		return a, 0, respond.BadRequest(fmt.Sprintf("error parsing form values: %s", err))
	}
	// Promlake keeps no series in memory, so both of Mimir's methods count what is stored.
	if m := r.Form.Get("count_method"); m != "" && m != "inmemory" && m != "active" {
		return a, 0, respond.BadRequest(fmt.Sprintf(`invalid parameter "count_method": want inmemory or active, got %q`, m))
	}
	if n := len(r.Form["selector"]); n > 1 {
		return a, 0, respond.BadRequest(fmt.Sprintf(`invalid parameter "selector": want one at most, got %d`, n))
	}
	if limit, err = number(r, "limit", mimirRows, maxMimirRows); err != nil {
		return a, 0, err
	}
	a, err = s.selection(r, r.Form["selector"])
	return a, limit, err
}

// labelNames answers labelNamesPath.
func (s Server) labelNames(r *http.Request) (any, error) {
	a, limit, err := s.mimirSelection(r)
	if err != nil {
		return nil, err
	}
	c, err := s.count(r, a)
	if err != nil {
		return nil, err
	}
	rows := c.Labels()
	out := labelNames{ValuesTotal: c.Pairs(), Names: len(rows), Cardinality: []labelNameRow{}}
	for _, x := range Largest(rows, limit, ByValues) {
		out.Cardinality = append(out.Cardinality, labelNameRow{x.Name, x.Values, mimirWeightOf(x.Weight)})
	}
	return out, nil
}

// labelValues answers labelValuesPath.
func (s Server) labelValues(r *http.Request) (any, error) {
	a, limit, err := s.mimirSelection(r)
	if err != nil {
		return nil, err
	}
	names := slices.Concat(r.Form["label_names[]"], r.Form["label_names"])
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return nil, respond.BadRequest("'label_names[]' param is required")
	}
	for _, n := range names {
		if !model.UTF8Validation.IsValidLabelName(n) {
			return nil, respond.BadRequest(fmt.Sprintf("invalid 'label_names' param '%s'", n))
		}
	}
	c, err := s.count(r, a)
	if err != nil {
		return nil, err
	}
	out := labelValues{SeriesTotal: c.Total.Series, Labels: []labelReport{}}
	for _, n := range names {
		x, ok := c.Label(n)
		if !ok {
			continue
		}
		l := labelReport{Name: n, Values: x.Values, Series: x.Series, Cardinality: []labelValueRow{}}
		for _, v := range Largest(c.Values(n), limit, BySeries) {
			l.Cardinality = append(l.Cardinality, labelValueRow{v.Name, v.Series, mimirWeightOf(v.Weight)})
		}
		out.Labels = append(out.Labels, l)
	}
	slices.SortFunc(out.Labels, func(a, b labelReport) int {
		return cmp.Or(cmp.Compare(b.Series, a.Series), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// activeSeries answers activeSeriesPath with the labels of the selected series. Mimir's clients read
// a row as a label set, so the weights of the rows are a list of their own.
func (s Server) activeSeries(r *http.Request) (any, error) {
	a, _, err := s.mimirSelection(r)
	if err != nil {
		return nil, err
	}
	if r.Form.Get("selector") == "" {
		return nil, respond.BadRequest(`missing parameter "selector"`)
	}
	type row struct {
		lset   labels.Labels
		weight mimirWeight
	}
	var rows []row
	err = s.Weigher.Weigh(r.Context(), a.sets, a.mint, a.maxt, func(lset labels.Labels, samples int64, bytes float64, last int64) {
		rows = append(rows, row{lset, mimirWeightOf(Weight{Series: 1, Samples: samples, Bytes: bytes, Last: last})})
	})
	slices.SortFunc(rows, func(a, b row) int { return labels.Compare(a.lset, b.lset) })
	out := struct {
		Data    []labels.Labels `json:"data"`
		Weights []mimirWeight   `json:"weights"`
	}{make([]labels.Labels, len(rows)), make([]mimirWeight, len(rows))}
	for i, x := range rows {
		out.Data[i], out.Weights[i] = x.lset, x.weight
	}
	return out, err
}
