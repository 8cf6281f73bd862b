package weights

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/usage"
)

const (
	// namesStatsPath is VictoriaMetrics' (https://docs.victoriametrics.com/,
	// "Track ingested metrics usage").
	namesStatsPath = "/status/metric_names_stats"
	// labelsStatsPath has the same for labels.
	labelsStatsPath = "/status/label_names_stats"
)

const (
	defaultNamesStats = 1000
	maxNamesStats     = 1_000_000
)

// Asker counts which metrics and labels its queries ask for.
type Asker interface {
	// Usage returns what was counted of the context's tenant.
	Usage(ctx context.Context) (usage.Report, error)
	// AskedForValues counts that the context's tenant asked for the values of a label.
	AskedForValues(ctx context.Context, label string)
}

// statsHead begins the answers of namesStatsPath and labelsStatsPath. The fields are
// VictoriaMetrics'.
type statsHead struct {
	Status       string `json:"status"`
	Since        int64  `json:"statsCollectedSince"`        // seconds: every query since then was counted
	Total        int    `json:"statsCollectedRecordsTotal"` // metrics, or labels, of the range
	LimitBytes   int64  `json:"trackerMemoryMaxSizeBytes"`
	CurrentBytes int64  `json:"trackerCurrentMemoryUsageBytes"`
}

// statsAnswer is an answer with its records.
type statsAnswer[R nameRecord | labelRecord] struct {
	statsHead
	Records []R `json:"records"`
}

// nameRecord is a record of namesStatsPath.
type nameRecord struct {
	Name string `json:"metricName"`
	statsRecord
}

// labelRecord is a record of labelsStatsPath.
type labelRecord struct {
	Name   string `json:"labelName"`
	Values int64  `json:"values"` // different ones
	statsRecord
}

type statsRecord struct {
	Queries uint64 `json:"queryRequestsCount"`
	Last    int64  `json:"lastRequestTimestamp"` // seconds; 0: never
	Series  int64  `json:"series"`
	Sample  int64  `json:"lastSampleTimestamp"` // seconds
	weight
}

// statsQuestion is what a request for the metrics or labels by their queries asks for.
type statsQuestion struct {
	series  asked
	limit   int
	most    uint64         // queries of a record
	pattern *regexp.Regexp // for a part of a record's name
	idle    time.Duration  // without a query for a record; 0: any
}

func statsQuestionOf(s Server, r *http.Request) (q statsQuestion, err error) {
	if err := r.ParseForm(); err != nil {
		return q, respond.BadRequest(fmt.Sprintf("error parsing form values: %s", err))
	}
	if q.series, err = s.selection(r, r.Form["match[]"]); err != nil {
		return q, err
	}
	if q.limit, err = number(r, "limit", defaultNamesStats, maxNamesStats); err != nil {
		return q, err
	}
	if q.most, err = threshold(r); err != nil {
		return q, err
	}
	if q.pattern, err = regexp.Compile(r.Form.Get("match_pattern")); err != nil {
		return q, respond.BadRequest(fmt.Sprintf("invalid parameter \"match_pattern\": %s", err))
	}
	if text := r.Form.Get("not_asked_for"); text != "" {
		d, err := model.ParseDuration(text)
		if err != nil || d == 0 {
			return q, respond.BadRequest(fmt.Sprintf("invalid parameter \"not_asked_for\": want a duration such as 30d, got %q", text))
		}
		q.idle = time.Duration(d)
	}
	return q, nil
}

// namesStats lists the metrics of a range with the number of queries that asked for them, the least
// asked first, and of these the largest.
func (s Server) namesStats(r *http.Request) (any, error) {
	return stats(s, r,
		func(c *Counter) []Row { return c.Values(model.MetricNameLabel) },
		(*usage.Report).Metrics,
		func(x Row, of statsRecord) nameRecord { return nameRecord{x.Name, of} })
}

// labelsStats is namesStats for labels without the metric name.
func (s Server) labelsStats(r *http.Request) (any, error) {
	return stats(s, r,
		func(c *Counter) []Row {
			return slices.DeleteFunc(c.Labels(), func(x Row) bool { return x.Name == model.MetricNameLabel })
		},
		(*usage.Report).Labels,
		func(x Row, of statsRecord) labelRecord { return labelRecord{x.Name, x.Values, of} })
}

// stats answers with records of what is counted in a request's range, with the queries that asked
// for it.
func stats[R nameRecord | labelRecord](
	s Server, r *http.Request, counted func(*Counter) []Row, asked func(*usage.Report, []string) []usage.Asked, record func(Row, statsRecord) R,
) (any, error) {
	q, err := statsQuestionOf(s, r)
	if err != nil {
		return nil, err
	}
	c, err := s.count(r, q.series)
	if err != nil {
		return nil, err
	}
	report, err := s.Asker.Usage(r.Context())
	if err != nil {
		return nil, err
	}
	before := int64(1<<63 - 1) // ms
	if q.idle > 0 {
		before = s.Now().Add(-q.idle).UnixMilli()
		if since := report.Since.UnixMilli(); since > before {
			return nil, tooEarly{q.idle, report.Since}
		}
	}
	rows := counted(c)
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Name
	}
	type row struct {
		Row
		statsRecord
	}
	var chosen []row
	for i, a := range asked(&report, names) {
		if a.Queries <= q.most && a.Last < before && q.pattern.MatchString(names[i]) {
			chosen = append(chosen, row{rows[i], statsRecord{a.Queries, a.Last / 1000, rows[i].Series, rows[i].Last / 1000, weightOf(rows[i].Weight)}})
		}
	}
	slices.SortFunc(chosen, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Queries, b.Queries), cmp.Compare(b.Row.Bytes, a.Row.Bytes), cmp.Compare(a.Name, b.Name))
	})
	out := statsAnswer[R]{
		statsHead{Status: "success", Since: report.Since.Unix(), Total: len(rows), LimitBytes: report.Limit, CurrentBytes: report.Used}, []R{},
	}
	for _, x := range chosen[:min(q.limit, len(chosen))] {
		out.Records = append(out.Records, record(x.Row, x.statsRecord))
	}
	return out, nil
}

// tooEarly reports that queries are not counted for long enough to answer which metrics or labels no
// query asked for.
type tooEarly struct {
	idle  time.Duration
	since time.Time
}

// Error implements error.
func (e tooEarly) Error() string {
	at := e.since.Add(e.idle + time.Millisecond).UTC().Format(time.RFC3339)
	return fmt.Sprintf("queries are counted since %s: what was not asked for in %s is known from %s on", e.since.UTC().Format(time.RFC3339), model.Duration(e.idle), at)
}

// QueryFailed gives the answer the status of a query that fails on its data.
func (tooEarly) QueryFailed() bool { return true }

// threshold reads the parameter le: records with at most so many queries are listed. The default is
// all.
func threshold(r *http.Request) (uint64, error) {
	text := r.Form.Get("le")
	if text == "" {
		return 1<<64 - 1, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, respond.BadRequest(fmt.Sprintf("invalid parameter \"le\": want a number of queries, 0 or more, got %q", text))
	}
	return n, nil
}
