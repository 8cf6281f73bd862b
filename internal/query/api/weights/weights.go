// Package weights answers what series cost, and which metrics and labels queries ask for: Mimir's
// cardinality API, VictoriaMetrics' statistics of metric names, and the extended status of the
// TSDB.
package weights

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/prom/timeparam"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// Weigher weighs series without reading their samples.
type Weigher interface {
	// Weigh calls visit with each distinct series that matches one of sets, with the samples and
	// bytes that are stored of it in [mint, maxt] (ms, inclusive), and with the time (ms) of the last
	// of them. After an error, what was visited is incomplete.
	Weigh(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64, visit func(lset labels.Labels, samples int64, bytes float64, last int64)) error
	// Recent is the range (ms) that a request without one asks for.
	Recent() (mint, maxt int64)
}

// Server answers requests. It is immutable.
type Server struct {
	Parser  parser.Parser
	Weigher Weigher // nil: requests are refused
	Asker   Asker   // nil: what queries ask for is not counted
	Now     func() time.Time
}

// Paths are all that Routes may have.
var Paths = []string{labelNamesPath, labelValuesPath, activeSeriesPath, namesStatsPath, labelsStatsPath}

// Routes returns, by the path below /api/v1, the functions whose data is the whole answer, without
// an envelope.
func (s Server) Routes() map[string]func(*http.Request) (any, error) {
	routes := map[string]func(*http.Request) (any, error){}
	if s.Weigher == nil {
		return routes
	}
	routes[labelNamesPath], routes[labelValuesPath], routes[activeSeriesPath] = s.labelNames, s.labelValues, s.activeSeries
	if s.Asker != nil {
		routes[namesStatsPath], routes[labelsStatsPath] = s.namesStats, s.labelsStats
	}
	return routes
}

// asked is what a request about cardinality asks for.
type asked struct {
	sets       [][]*labels.Matcher
	mint, maxt int64 // ms, inclusive
}

// count counts the series of a request.
func (s Server) count(r *http.Request, a asked) (*Counter, error) {
	c := &Counter{}
	return c, s.Weigher.Weigh(r.Context(), a.sets, a.mint, a.maxt, c.Add)
}

// selection reads selectors and the range of a request. The default of selectors is every series.
func (s Server) selection(r *http.Request, selectors []string) (a asked, err error) {
	if s.Weigher == nil {
		return a, respond.BadRequest("this server cannot count series")
	}
	a.sets = [][]*labels.Matcher{{}}
	if selectors = slices.DeleteFunc(selectors, func(t string) bool { return t == "" }); len(selectors) > 0 {
		if a.sets, err = s.Parser.ParseMetricSelectors(selectors); err != nil {
			return a, respond.BadRequest(err.Error())
		}
	}
	a.mint, a.maxt, err = s.rangeOf(r)
	return a, err
}

// rangeOf reads the parameters date, or start and end. The default is the backend's recent range;
// of a range with one end, its length counts from there.
func (s Server) rangeOf(r *http.Request) (mint, maxt int64, err error) {
	mint, maxt = s.Weigher.Recent()
	length := maxt - mint
	start, end, date := r.Form.Get("start"), r.Form.Get("end"), r.Form.Get("date")
	if date != "" {
		if start != "" || end != "" {
			return 0, 0, respond.BadRequest("parameter date stands for start and end, want one or the other")
		}
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			return 0, 0, respond.BadRequest(fmt.Sprintf("invalid parameter \"date\": want YYYY-MM-DD, got %q", date))
		}
		return day.UnixMilli(), day.AddDate(0, 0, 1).UnixMilli() - 1, nil
	}
	for _, p := range []struct {
		name, text string
		at         *int64
	}{{"end", end, &maxt}, {"start", start, &mint}} {
		if p.text == "" {
			continue
		}
		t, err := timeparam.Parse(p.text)
		if err != nil {
			return 0, 0, respond.BadRequest(fmt.Sprintf("invalid parameter %q: %s", p.name, err))
		}
		*p.at = min(max(t.UnixMilli(), key.MinTime), key.MaxTime)
	}
	if start == "" && end != "" {
		mint = maxt - length
	}
	if mint > maxt {
		return 0, 0, respond.BadRequest(`invalid parameter "end": end timestamp must not be before start time`)
	}
	return mint, maxt, nil
}

// number reads a parameter from 1 to most.
func number(r *http.Request, name string, preset, most int) (int, error) {
	text := r.Form.Get(name)
	if text == "" {
		return preset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, respond.BadRequest(fmt.Sprintf("invalid parameter %q: want a number from 1 to %d, got %q", name, most, text))
	}
	return n, nil
}

// weight is a row's weight as answers have it, in Prometheus' style of names.
type weight struct {
	Samples int64   `json:"samples"`
	Bytes   int64   `json:"bytes"`
	Dollars float64 `json:"dollarsPerMonth"` // for keeping the bytes
}

func weightOf(w Weight) weight {
	gigabyte := cost.Default().Price(cost.S3Storage) // for a month
	return weight{w.Samples, int64(w.Bytes), w.Bytes / (1 << 30) * gigabyte.Dollars(1)}
}
