package importapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	config_util "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
)

// Remote names samples of a server with Prometheus' remote read API.
type Remote struct {
	URL        string        // of the server, with or without /api/v1/read
	Match      []string      // selectors; none: all series
	Start, End time.Time     // inclusive
	HTTPConfig string        // file with Prometheus' configuration of an HTTP client; "" is none
	Headers    []string      // "Name: value", of all requests
	Token      string        // bearer token, if not empty
	Timeout    time.Duration // of one request, which reads two hours
	Identity   string        // identifies the samples instead of URL and tenant, if not empty
	// Now is the time at which the server is asked: there is nothing to read after it. A window that
	// ends less than settle before it counts as a part of one. Zero: the server gets no more samples.
	Now time.Time
}

// settle is how long a server may still get samples of a window that has ended.
const settle = 10 * time.Minute

// server is a Remote whose settings are checked.
type server struct {
	Remote
	base   string // the URL without /api/v1/read
	sets   [][]*labels.Matcher
	read   remote.ReadClient
	http   *http.Client
	dir    string // for temporary files
	guess  estimate
	prefix string // of the inputs' identifiers
}

// find implements Source. Every window of two hours is an input. Its samples are streamed to a file
// in dir when they are read.
func (r Remote) find(ctx context.Context, dir string) (found, error) {
	s := &server{Remote: r, dir: dir}
	if err := s.prepare(); err != nil {
		return found{}, fmt.Errorf("import: %w", err)
	}
	first, last := s.Start.UnixMilli(), s.End.UnixMilli()
	if first > last || first < key.MinTime || last > key.MaxTime {
		return found{}, fmt.Errorf("import: from %s to %s: want a start before the end, and years 0 to 9999", s.Start.UTC().Format(time.RFC3339), s.End.UTC().Format(time.RFC3339))
	}
	if !s.Now.IsZero() {
		last = min(last, s.Now.UnixMilli())
		if first > last {
			return found{}, fmt.Errorf("import: --start %s is in the future", s.Start.UTC().Format(time.RFC3339))
		}
	}
	s.guess = s.estimate(ctx, first, last)
	var inputs []bulk.Input
	for w := key.WindowOf(first); int64(w) <= last; w = key.Window(w.End()) {
		inputs = append(inputs, s.input(w, max(first, int64(w)), min(last, w.End()-1)))
	}
	return found{
		inputs: inputs,
		describe: func(t *human.Table) {
			t.Row("windows of two hours", human.Count(int64(len(inputs))))
			if s.guess.err != nil {
				t.Row("samples to import are unknown", s.guess.err.Error())
			}
		},
		series: func(context.Context, *bulk.Plan) (most int64, _ error) {
			for _, p := range s.guess.points {
				most = max(most, int64(p.series))
			}
			return most, nil
		},
		left: func(*human.Table) {},
	}, nil
}

// prepare checks the settings and makes the clients.
func (s *server) prepare() (err error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--url %q: want the http:// or https:// address of a server", s.URL)
	}
	const path = "/api/v1/read"
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), path)
	s.base = u.String()
	u.Path += path
	match := slices.Sorted(slices.Values(s.Match))
	if len(match) == 0 {
		match = []string{`{__name__=~".+"}`}
	}
	s.Match = slices.Compact(match)
	if s.sets, err = parser.NewParser(parser.Options{}).ParseMetricSelectors(s.Match); err != nil {
		return fmt.Errorf("--match: %w", err)
	}
	headers := map[string]string{}
	for _, h := range s.Headers {
		name, value, ok := strings.Cut(h, ":")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if !ok || name == "" {
			return fmt.Errorf("--header %q: want a name, a colon and a value", name)
		}
		headers[name] = strings.TrimSpace(value)
	}
	if s.Token != "" {
		headers["Authorization"] = "Bearer " + s.Token
	}
	conf := config_util.DefaultHTTPClientConfig
	if s.HTTPConfig != "" {
		c, _, err := config_util.LoadHTTPConfigFile(s.HTTPConfig)
		if err != nil {
			return fmt.Errorf("--http.config.file: %w", err)
		}
		conf = *c
	}
	if s.read, err = remote.NewReadClient("import", &remote.ClientConfig{
		URL: &config_util.URL{URL: u}, Timeout: model.Duration(s.Timeout), HTTPClientConfig: conf, Headers: headers, ChunkedReadLimit: config.DefaultChunkedReadLimit,
	}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	c, ok := s.read.(*remote.Client)
	if !ok {
		return errors.New("make a client: upstream's is of another type")
	}
	c.Client.Transport = refusing{c.Client.Transport}
	s.http = c.Client
	identity := s.Identity
	if identity == "" {
		u.User = nil
		identity = u.String() + " " + headers[http.CanonicalHeaderKey(tenant.Header)]
	}
	sum := sha256.Sum256([]byte(identity + "\n" + strings.Join(s.Match, "\n")))
	s.prefix = "read/" + hex.EncodeToString(sum[:8]) + "/"
	return nil
}

// input is a part of a window (ms, inclusive) as an input of an import. Samples of a whole window
// are taken as the same whenever it is read.
func (s *server) input(w key.Window, from, to int64) bulk.Input {
	id := s.prefix + w.String()
	settled := s.Now.IsZero() || w.End() <= s.Now.Add(-settle).UnixMilli()
	if from > int64(w) || to < w.End()-1 || !settled {
		id += fmt.Sprintf("/%d-%d", from, to)
	}
	return bulk.Input{
		ID: id, Written: time.UnixMilli(to), MinT: from, MaxT: to, Samples: s.guess.samples(from, to),
		Open: func(context.Context) (bulk.Opened, error) { return &stream{server: s, from: from, to: to}, nil },
	}
}

// refusedError reports an answer that stays the same when the request is repeated.
type refusedError struct{ status, body string }

// Error implements error.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the server answers %s: %s", e.status, e.body)
}

// refusing turns such answers into errors.
type refusing struct{ next http.RoundTripper }

// shown bounds the bytes of an answer that an error shows.
const shown = 512

// RoundTrip implements http.RoundTripper.
func (t refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode/100 != 4 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout {
		return resp, err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, shown)) // the status says enough without it
	return nil, &refusedError{resp.Status, strings.TrimSpace(strings.ToValidUTF8(string(body), "?"))}
}

// estimate is about how many samples a server has: at some times, how many series.
type estimate struct {
	points   []point // ascending; none: unknown
	interval float64 // ms between two samples of a series
	err      error   // why it is unknown
}

type point struct {
	at     int64 // ms
	series float64
}

const (
	// probes is the number of times at which series are counted.
	probes = 10
	// usualInterval is that between samples, in ms, unless the series up shows another one.
	usualInterval = 60_000
	// maxAnswer bounds the answer of a query, bytes.
	maxAnswer = 1 << 20
	// estimateTimeout bounds a query. What is imported does not depend on it.
	estimateTimeout = 30 * time.Second
)

// estimate asks the server's query API.
func (s *server) estimate(ctx context.Context, first, last int64) (e estimate) {
	step := max(1000, (last-first)/probes)
	counts := map[int64]float64{}
	for _, match := range s.Match {
		values, err := s.query(ctx, "/api/v1/query_range", url.Values{
			"query": {"count(" + match + ")"}, "start": {ask.Seconds(first)}, "end": {ask.Seconds(last)}, "step": {ask.Seconds(step)},
		})
		if err != nil {
			return estimate{err: err}
		}
		for at, v := range values {
			counts[at] += v
		}
	}
	e.interval = usualInterval
	const span = 600_000
	values, err := s.query(ctx, "/api/v1/query", url.Values{"query": {"avg(count_over_time(up[10m]))"}, "time": {ask.Seconds(last)}})
	for _, v := range values {
		if err == nil && v > 0 {
			e.interval = span / v
		}
	}
	for at := first; at <= last; at += step {
		e.points = append(e.points, point{at, counts[at]})
	}
	return e
}

// query asks a query whose answer has one series at most, and returns its values by time in ms.
func (s *server) query(ctx context.Context, path string, form url.Values) (map[int64]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, estimateTimeout)
	defer cancel()
	var answer struct {
		Data struct {
			Result []struct {
				Value  model.SamplePair
				Values []model.SamplePair
			}
		}
	}
	if err := ask.PostJSON(ctx, s.http, s.base+path, form, maxAnswer, &answer); err != nil {
		return nil, fmt.Errorf("ask for the number of series: %w", err)
	}
	out := map[int64]float64{}
	for _, r := range answer.Data.Result {
		for _, v := range append(r.Values, r.Value) {
			if v.Timestamp > 0 {
				out[int64(v.Timestamp)] = float64(v.Value)
			}
		}
	}
	return out, nil
}

// samples returns about how many samples there are in [from, to], ms.
func (e *estimate) samples(from, to int64) int64 {
	for i := len(e.points) - 1; i >= 0; i-- {
		if p := e.points[i]; p.at <= from || i == 0 {
			return int64(p.series * float64(to-from+1) / e.interval)
		}
	}
	return 0
}
