package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/query/usage"
)

// namesStatsPath is VictoriaMetrics' (https://docs.victoriametrics.com/,
// "Track ingested metrics usage").
const namesStatsPath = "/status/metric_names_stats"

const (
	defaultNamesStats = 1000
	maxNamesStats     = 1_000_000
)

// Asker is a Backend that counts which metrics its queries ask for.
type Asker interface {
	// Usage returns what was counted of the context's tenant.
	Usage(ctx context.Context) usage.Report
}

// namesAnswer is the answer of namesStatsPath. The fields up to Records are VictoriaMetrics'.
type namesAnswer struct {
	Status       string       `json:"status"`
	Since        int64        `json:"statsCollectedSince"`        // seconds: the start of this process
	Total        int          `json:"statsCollectedRecordsTotal"` // metrics of the range
	LimitBytes   int64        `json:"trackerMemoryMaxSizeBytes"`
	CurrentBytes int64        `json:"trackerCurrentMemoryUsageBytes"`
	Records      []nameRecord `json:"records"`

	Complete bool `json:"complete"` // no name was left out for the limit of memory
}

type nameRecord struct {
	Name    string `json:"metricName"`
	Queries uint64 `json:"queryRequestsCount"`
	Last    int64  `json:"lastRequestTimestamp"` // seconds; 0: never
	Series  int64  `json:"series"`
	weight
}

// namesStats lists the metrics of a range with the number of queries that asked for them, the least
// asked first, and of these the largest.
func (s *server) namesStats(r *http.Request) (any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, badRequest(fmt.Sprintf("error parsing form values: %s", err))
	}
	a, err := s.selection(r, r.Form["match[]"])
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit", defaultNamesStats, maxNamesStats)
	if err != nil {
		return nil, err
	}
	most, err := threshold(r)
	if err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile(r.Form.Get("match_pattern"))
	if err != nil {
		return nil, badRequest(fmt.Sprintf("invalid parameter \"match_pattern\": %s", err))
	}
	c, err := s.count(r, a)
	if err != nil {
		return nil, err
	}
	report := s.asks.Usage(r.Context())
	out := namesAnswer{
		Status: "success", Since: report.Since.Unix(), LimitBytes: report.Limit, CurrentBytes: report.Used,
		Records: []nameRecord{}, Complete: report.Complete,
	}
	for _, row := range c.Values(model.MetricNameLabel) {
		out.Total++
		asked := report.Asked(row.Name)
		if asked.Queries > most || !pattern.MatchString(row.Name) {
			continue
		}
		rec := nameRecord{Name: row.Name, Queries: asked.Queries, Series: row.Series, weight: weightOf(row.Weight)}
		if !asked.Last.IsZero() {
			rec.Last = asked.Last.Unix()
		}
		out.Records = append(out.Records, rec)
	}
	slices.SortFunc(out.Records, func(a, b nameRecord) int {
		return cmp.Or(cmp.Compare(a.Queries, b.Queries), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	out.Records = out.Records[:min(limit, len(out.Records))]
	return out, nil
}

// threshold reads the parameter le: records with at most so many queries are listed. The default is
// all.
func threshold(r *http.Request) (uint64, error) {
	text := r.Form.Get("le")
	if text == "" {
		return 1<<64 - 1, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, badRequest(fmt.Sprintf("invalid parameter \"le\": want a number of queries, 0 or more, got %q", text))
	}
	return n, nil
}
