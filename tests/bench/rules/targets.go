package rules

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
)

// hostLabels are the labels of a host, which its target has in the configuration. The job is that
// of the configuration.
var hostLabels = []string{"env", "host_number", model.InstanceLabel, "role"}

const prefix = "/targets/"

func path(host int) string { return prefix + strconv.Itoa(host) }

// sized returns a capture with n series: those of the captured ones that rules read, then the
// others; beyond the number of captured series it repeats them with a label copy. It returns an
// error if n is too small for the series that rules read.
func sized(c *capture.Capture, n int) (*capture.Capture, error) {
	isNeeded := func(s capture.Series) bool { return slices.Contains(needed, s.Labels.Get(model.MetricNameLabel)) }
	first, rest := []capture.Series{}, []capture.Series{}
	for _, s := range c.Series {
		if isNeeded(s) {
			first = append(first, s)
		} else {
			rest = append(rest, s)
		}
	}
	if n < len(first) {
		return nil, fmt.Errorf("%d series of a target: the rules read %d", n, len(first))
	}
	out := &capture.Capture{Times: c.Times}
	all := slices.Concat(first, rest)
	for i := range n {
		s := all[i%len(all)]
		if i >= len(all) {
			// the copies have names of their own, so that rules do not read them
			b := labels.NewBuilder(s.Labels)
			b.Set(model.MetricNameLabel, "copy_of_"+s.Labels.Get(model.MetricNameLabel)).Set("copy", strconv.Itoa(i/len(all)))
			s.Labels = b.Labels()
		}
		out.Series = append(out.Series, s)
	}
	// the lines of a family are adjacent
	slices.SortStableFunc(out.Series, func(a, b capture.Series) int {
		return strings.Compare(a.Labels.Get(model.MetricNameLabel), b.Labels.Get(model.MetricNameLabel))
	})
	return out, nil
}

// targets serves the page of each host of a fleet. The values of a host advance with each scrape of
// it, so that all servers get equal values.
type targets struct {
	hosts    *fleet.Fleet
	interval time.Duration
	lines    []string // of a page, each without its value and with the space before it
	server   *http.Server
	addr     string

	pages sync.Pool // *page
	mu    sync.Mutex
	seen  []seen // by host
	err   error  // of the HTTP server
}

// seen is what a host knows of its scrapes.
type seen struct {
	scrapes int
	missed  int // scrapes that should have been between two others
	last    time.Time
}

// page is the memory of a page.
type page struct {
	values []float64
	text   []byte
}

// serve serves the targets on a free loopback port until they are closed.
func serve(hosts *fleet.Fleet, c *capture.Capture, interval time.Duration) (*targets, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for scrapes: %w", err)
	}
	t := &targets{hosts: hosts, interval: interval, lines: linesOf(c), addr: l.Addr().String(), seen: make([]seen, hosts.Len()/hosts.PerHost())}
	t.begin(time.Now())
	t.pages.New = func() any { return &page{values: make([]float64, hosts.PerHost())} }
	t.server = &http.Server{Handler: t}
	go func() {
		if err := t.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.err = err
		}
	}()
	return t, nil
}

// linesOf returns the lines of a page. The first of a metric begins with its help and its type.
func linesOf(c *capture.Capture) []string {
	var lines []string
	last := ""
	for _, s := range c.Series {
		var b strings.Builder
		name := s.Labels.Get(model.MetricNameLabel)
		if name != last {
			typ := "gauge"
			if strings.HasSuffix(name, "_total") {
				typ = "counter"
			}
			fmt.Fprintf(&b, "# HELP %s The metric %s of node_exporter.\n# TYPE %[1]s %[3]s\n", name, strings.ReplaceAll(name, "_", " "), typ)
		}
		last = name
		b.WriteString(name)
		sep := byte('{')
		s.Labels.Range(func(l labels.Label) {
			if l.Name == model.MetricNameLabel {
				return
			}
			b.WriteByte(sep)
			fmt.Fprintf(&b, "%s=%q", l.Name, l.Value)
			sep = ','
		})
		if sep == ',' {
			b.WriteByte('}')
		}
		b.WriteByte(' ')
		lines = append(lines, b.String())
	}
	return lines
}

// begin counts scrapes from now on.
func (t *targets) begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.seen {
		t.seen[i].last = now
	}
}

// ServeHTTP implements http.Handler.
func (t *targets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, prefix))
	if err != nil || host < 0 || host >= len(t.seen) {
		http.NotFound(w, r)
		return
	}
	now := time.Now()
	round := t.note(host, now)
	p := t.pages.Get().(*page)
	defer t.pages.Put(p)
	t.hosts.Values(p.values, host*t.hosts.PerHost(), round, now.UnixMilli())
	p.text = p.text[:0]
	for i, line := range t.lines {
		p.text = append(p.text, line...)
		p.text = strconv.AppendFloat(p.text, p.values[i], 'g', -1, 64)
		p.text = append(p.text, '\n')
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(p.text)))
	_, _ = w.Write(p.text) // the server counts a scrape that fails
}

// note counts a scrape and returns its number.
func (t *targets) note(host int, now time.Time) (round int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.seen[host]
	s.missed += between(s.last, now, t.interval)
	s.last = now
	s.scrapes++
	return s.scrapes - 1
}

// between returns how many scrapes are missing between two that were made.
func between(a, b time.Time, interval time.Duration) int {
	return max(0, int(math.Round(float64(b.Sub(a))/float64(interval)))-1)
}

// count returns the scrapes until now, and those that were missed.
func (t *targets) count(now time.Time) (made, missed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.seen {
		made += s.scrapes
		missed += s.missed + between(s.last, now, t.interval)
	}
	return made, missed
}

// close ends the HTTP server.
func (t *targets) close() error {
	err := t.server.Shutdown(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(err, t.err)
}
