package divide

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Path is where a query process takes pieces, by POST.
const Path = "/api/v1/piece"

// ErrWhole reports that a query is to be evaluated undivided: only that gives its answer, or its
// error.
var ErrWhole = errors.New("the query is evaluated undivided")

// StatusOf returns the HTTP status by which a worker answers an error of an evaluation.
func StatusOf(err error) int {
	var process *memory.Error
	var refused interface{ BadQuery() bool }
	is := func(target any) bool { return errors.As(err, target) }
	switch {
	case errors.Is(err, ErrWhole):
		return http.StatusUnprocessableEntity
	case errors.Is(err, objstore.ErrNotFound):
		return http.StatusGone
	case errors.Is(err, request.ErrNarrow):
		return http.StatusConflict
	case is(&refused):
		return http.StatusBadRequest
	case is(&process), is(new(promql.ErrQueryTimeout)), is(new(promql.ErrQueryCanceled)), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	case is(new(promql.ErrStorage)):
		return http.StatusInternalServerError
	}
	return http.StatusUnprocessableEntity
}

// final returns the error of the query if an evaluation ended with a status that every process
// would give, and nil if another one may answer.
func final(status int, cause error) error {
	switch status {
	case http.StatusGone:
		return fmt.Errorf("%w: %w", objstore.ErrNotFound, cause)
	case http.StatusConflict:
		return fmt.Errorf("%w: %w", request.ErrNarrow, cause)
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %w", ErrWhole, cause)
	}
	return nil
}

// inFlight is the number of pieces of a query that each worker evaluates at once, at most, and
// tries the number of workers that are asked for a piece before this process evaluates it.
const (
	inFlight = 2
	tries    = 3
)

// Workers are the query processes that evaluate pieces for this one. It is safe for concurrent use.
type Workers struct {
	addresses []string
	client    *http.Client
	logger    *slog.Logger
	pieces    *prometheus.CounterVec
	running   prometheus.Gauge

	mu   sync.Mutex
	busy map[string]int // pieces in flight, and failed ones of running queries, by address; no zeros
}

// NewWorkers returns the workers at addresses: HOST:PORT, or dns+HOST:PORT for all addresses of a
// name, which is looked up for each divided query. It counts in reg, which may be nil. It returns
// nil without addresses.
func NewWorkers(addresses []string, reg prometheus.Registerer, logger *slog.Logger) (*Workers, error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(strings.TrimPrefix(a, dnsPrefix))
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || n == 0 || strings.ContainsAny(host, "/+@?# ") {
			return nil, fmt.Errorf("query.workers: want HOST:PORT or dns+HOST:PORT, got %q", a)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.MaxIdleConnsPerHost = nil, 2*inFlight
	m := telemetry.Metrics{Registerer: reg, Prefix: "promlake_query_"}
	return &Workers{
		addresses: slices.Compact(slices.Sorted(slices.Values(addresses))), logger: logger, busy: map[string]int{},
		client:  &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		pieces:  m.CountersOf("pieces_total", "Attempts to evaluate slices of divided queries: ok at a worker; failed or slow at one, so that another process repeats them; local, in this process after that; whole, an error after which the query is repeated or evaluated undivided.", "result", "ok", "failed", "slow", "local", "whole"),
		running: m.Gauge("pieces_in_flight", "Slices of divided queries that workers evaluate for this process."),
	}, nil
}

const dnsPrefix = "dns+"

// Resolve returns the addresses of all workers now. Names that are not found are logged and left
// out. Workers may be nil.
func (w *Workers) Resolve(ctx context.Context) (out []string) {
	if w == nil {
		return nil
	}
	for _, a := range w.addresses {
		name, ok := strings.CutPrefix(a, dnsPrefix)
		if !ok {
			out = append(out, a)
			continue
		}
		host, port, _ := net.SplitHostPort(name) // NewWorkers has parsed it
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			w.logger.Warn("look up query workers", "address", a, "err", err)
		}
		for _, ip := range found {
			out = append(out, net.JoinHostPort(ip, port))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Run returns the answers to all pieces of a query, in their order. Workers at addresses evaluate
// them, the least busy one first; a piece that fails, or takes much longer than others, is given to
// another worker, and after some of them to local. The first error ends all: ErrWhole,
// request.ErrNarrow or objstore.ErrNotFound where the query is to be repeated, or one that names
// the slice and the last worker.
func (w *Workers) Run(ctx context.Context, addresses []string, pieces []*Piece, local func(context.Context, *Piece) (*Answer, error)) ([]*Answer, error) {
	answers, bodies := make([]*Answer, len(pieces)), make([][]byte, len(pieces))
	for i, p := range pieces {
		var err error
		if bodies[i], err = p.Encode(); err != nil {
			return nil, err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight * len(addresses))
	var here sync.Mutex // this process evaluates one piece at a time
	pace := &pace{}
	defer func() {
		for _, addr := range pace.failed {
			w.give(addr)
		}
	}()
	for i, p := range pieces {
		g.Go(telemetry.Guard(func() error {
			var tried []string
			var last error
			for len(tried) < tries && ctx.Err() == nil {
				addr := w.take(addresses, tried)
				if addr == "" {
					break
				}
				w.running.Inc()
				answer, status, result, err := w.attempt(ctx, addr, p, bodies[i], pace)
				w.running.Dec()
				if err == nil {
					w.give(addr)
				} else {
					pace.fail(addr)
					last = fmt.Errorf("worker %s: %w", addr, err)
				}
				if err != nil && ctx.Err() != nil { // another piece has ended the query
					return last
				}
				ends := final(status, last)
				if ends != nil {
					result = "whole"
				}
				w.pieces.WithLabelValues(result).Inc()
				if answers[i] = answer; err == nil || ends != nil {
					return ends
				}
				var process *memory.Error
				if errors.As(err, &process) { // of this process
					return err
				}
				w.logger.Warn("a worker did not answer a piece of a query", "worker", addr, "tenant", p.Tenant, "piece", p.Slice(), "result", result, "err", err)
				tried = append(tried, addr)
			}
			here.Lock()
			defer here.Unlock()
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("evaluate %s: %w", p.Slice(), errors.Join(err, last))
			}
			w.pieces.WithLabelValues("local").Inc()
			answer, err := local(ctx, p)
			if err != nil {
				if err := final(StatusOf(err), err); err != nil {
					return err
				}
				return fmt.Errorf("evaluate %s: %w", p.Slice(), errors.Join(err, last))
			}
			answers[i] = answer
			return nil
		}))
	}
	return answers, g.Wait()
}

// take returns the least busy of the addresses that were not tried, "" if there is none. give must
// follow.
func (w *Workers) take(addresses, tried []string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	best := ""
	for _, a := range addresses {
		if !slices.Contains(tried, a) && (best == "" || w.busy[a] < w.busy[best]) {
			best = a
		}
	}
	if best != "" {
		w.busy[best]++
	}
	return best
}

func (w *Workers) give(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[addr]--; w.busy[addr] == 0 {
		delete(w.busy, addr)
	}
}

// pace records how long the pieces of a query took, and which workers failed.
type pace struct {
	mu      sync.Mutex
	longest time.Duration // of those that have an answer; 0: none has
	failed  []string      // a worker for each failed attempt: busy until the query ends
}

func (p *pace) fail(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = append(p.failed, addr)
}

// A piece is slow if it takes slowFactor times as long as the longest one that has an answer, and
// slowLeast more; without one, after half of the time that the query has left.
const (
	slowFactor = 4
	slowLeast  = 5 * time.Second
)

var errSlow = errors.New("it took much longer than others, or half of the time that was left")

// attempt asks a worker for a piece. The status is that of its answer, 0 if there is none.
func (w *Workers) attempt(asked context.Context, addr string, p *Piece, body []byte, pace *pace) (a *Answer, status int, result string, err error) {
	ctx, cancel := context.WithCancelCause(asked)
	defer cancel(nil)
	begin := time.Now()
	half := time.Duration(p.Timeout) * time.Millisecond / 2
	if end, ok := asked.Deadline(); ok {
		half = time.Until(end) / 2
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
			pace.mu.Lock()
			most := half
			if pace.longest > 0 {
				most = min(half, slowFactor*pace.longest+slowLeast)
			}
			pace.mu.Unlock()
			if time.Since(begin) > most {
				cancel(errSlow)
			}
		}
	}()
	a, status, err = w.ask(ctx, addr, p, body)
	if err == nil {
		pace.mu.Lock()
		pace.longest = max(pace.longest, time.Since(begin))
		pace.mu.Unlock()
		return a, status, "ok", nil
	}
	if context.Cause(ctx) == errSlow {
		return nil, 0, "slow", errSlow
	}
	return nil, status, "failed", err
}

// maxMessage is the largest size (bytes) of a worker's error that is read.
const maxMessage = 4 << 10

func (w *Workers) ask(ctx context.Context, addr string, p *Piece, body []byte) (*Answer, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+Path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(tenant.Header, p.Tenant)
	if c := auth.Credentials(ctx); c != "" {
		req.Header.Set("Authorization", c)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxMessage))
		var failure struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(text, &failure) // else the text is shown
		return nil, res.StatusCode, fmt.Errorf("%s: %s", res.Status, cmp.Or(failure.Error, string(text)))
	}
	if m := res.Header.Get("Content-Type"); m != MediaType {
		return nil, 0, fmt.Errorf("it answered %q in place of %s", m, MediaType)
	}
	a, err := Read(res.Body, p, memory.Of(ctx).Charge)
	return a, 0, err
}
