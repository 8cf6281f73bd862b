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
	"regexp"
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
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/aws/signed"
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

// tries is the number of attempts of workers at a piece before this process evaluates it. A
// function gets the second one after pause, and the third one after twice as long, since it may be
// throttled.
const (
	tries = 3
	pause = 200 * time.Millisecond
)

// Workers are what evaluates pieces for this process: other query processes, or the invocations of
// a function of AWS Lambda, each of which counts as a worker. It is safe for concurrent use.
type Workers struct {
	addresses []string // of a function: its address for each invocation at once
	function  bool
	// PerWorker is the number of slices for each worker: while a process has a slow one, the others
	// take what is left. inFlight is the number of pieces of a query that each evaluates at once.
	PerWorker, inFlight int

	client  *http.Client
	logger  *slog.Logger
	pieces  *prometheus.CounterVec
	running prometheus.Gauge

	mu sync.Mutex
	// busy has the pieces in flight, and the failed ones of running queries, by address; of a
	// function, the pieces in flight by tenant. It has no zeros.
	busy  map[string]int
	freed chan struct{} // of a function: closed, and replaced, when a piece has ended
}

// functionName is the name of a function or its ARN, which may end in a version or an alias.
var functionName = regexp.MustCompile(`^[\w:$-]{1,256}$`)

// NewWorkers returns the workers at addresses: HOST:PORT, or dns+HOST:PORT for all addresses of a
// name, which is looked up for each divided query; or lambda:FUNCTION alone, which evaluates up to
// invocations pieces of a tenant at once. FUNCTION self is the function in which this process runs.
// It counts in reg, which may be nil. It returns nil without addresses.
func NewWorkers(addresses []string, invocations int, reg prometheus.Registerer, logger *slog.Logger) (*Workers, error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	m := telemetry.Metrics{Registerer: reg, Prefix: "promlake_query_"}
	w := &Workers{
		addresses: slices.Compact(slices.Sorted(slices.Values(addresses))), PerWorker: 3, inFlight: 2, logger: logger, busy: map[string]int{}, freed: make(chan struct{}),
		client:  &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		pieces:  m.CountersOf("pieces_total", "Attempts to evaluate slices of divided queries: ok at a worker; failed or slow at one, so that another process repeats them; large, an answer that a function cannot send, so that it gets the halves; local, in this process after that; whole, an error after which the query is repeated or evaluated undivided.", "result", "ok", "failed", "slow", "large", "local", "whole"),
		running: m.Gauge("pieces_in_flight", "Slices of divided queries that workers evaluate for this process."),
	}
	if name, ok := strings.CutPrefix(addresses[0], functionPrefix); ok && len(addresses) == 1 {
		if name == self {
			name = lambda.Self()
		}
		if !functionName.MatchString(name) {
			return nil, fmt.Errorf("query.workers: want the name or the ARN of a function of AWS Lambda, or %s%s in a function, got %q", functionPrefix, self, addresses[0])
		}
		w.addresses, w.function, w.PerWorker, w.inFlight = slices.Repeat([]string{functionPrefix + name}, invocations), true, 1, 1
		w.client.Transport = &lambda.Remote{Name: name, Client: &signed.Client{Service: "lambda", Repeats: true}}
		return w, nil
	}
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(strings.TrimPrefix(a, dnsPrefix))
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || n == 0 || strings.ContainsAny(host, "/+@?# ") {
			return nil, fmt.Errorf("query.workers: want HOST:PORT or dns+HOST:PORT, or %sFUNCTION alone, got %q", functionPrefix, a)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.MaxIdleConnsPerHost = nil, 2*w.inFlight
	w.client.Transport = transport
	return w, nil
}

const (
	dnsPrefix      = "dns+"
	functionPrefix = "lambda:"
	self           = "self"
)

// Resolve returns the addresses of all workers now. Names that are not found are logged and left
// out. Workers may be nil.
func (w *Workers) Resolve(ctx context.Context) (out []string) {
	if w == nil {
		return nil
	}
	if w.function {
		return w.addresses
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

// Run returns the answers to the slices of a query of the tenant of ctx, in their order. Workers at
// addresses evaluate the pieces that cut makes of slices, the least busy one first; a piece that
// fails, or takes much longer than others, is given to another worker, and after some of them to
// local. Where the answer, or the piece, is too large for a function, it gets both halves one after
// the other. The first error ends all: ErrWhole, request.ErrNarrow or objstore.ErrNotFound where
// the query is to be repeated, or one that names the slice and the last worker.
func (w *Workers) Run(ctx context.Context, addresses []string, all []Slice, cut func(Slice) (*Piece, error), local func(context.Context, *Piece) (*Answer, error)) ([]*Answer, error) {
	answers := make([][]*Answer, len(all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(w.inFlight * len(addresses))
	r := &run{Workers: w, addresses: addresses, cut: cut, local: local}
	defer func() {
		for _, key := range r.failed {
			w.give(key)
		}
	}()
	for i, s := range all {
		g.Go(telemetry.Guard(func() (err error) {
			answers[i], err = r.slice(ctx, s)
			return err
		}))
	}
	err := g.Wait()
	return slices.Concat(answers...), err
}

// run is a divided query.
type run struct {
	*Workers
	addresses []string
	cut       func(Slice) (*Piece, error)
	local     func(context.Context, *Piece) (*Answer, error)
	here      sync.Mutex // this process evaluates one piece at a time

	mu      sync.Mutex
	longest time.Duration // that a piece took which has an answer; 0: none has
	failed  []string      // a process for each failed attempt: busy until the query ends
}

// slice returns the answer to a slice, or those to its parts.
func (r *run) slice(ctx context.Context, s Slice) ([]*Answer, error) {
	p, err := r.cut(s)
	if err != nil {
		return nil, err
	}
	var tried []string
	var last error
	for len(tried) < tries && ctx.Err() == nil {
		if r.function && len(tried) > 0 {
			select {
			case <-time.After(pause * time.Duration(len(tried))):
			case <-ctx.Done():
			}
		}
		addr := r.take(ctx, p.Tenant, r.addresses, tried)
		if addr == "" {
			break
		}
		r.running.Inc()
		answer, status, result, err := r.attempt(ctx, addr, p)
		r.running.Dec()
		switch {
		case r.function:
			r.give(p.Tenant)
		case err == nil:
			r.give(addr)
		default:
			r.mu.Lock()
			r.failed = append(r.failed, addr)
			r.mu.Unlock()
		}
		if err != nil {
			last = fmt.Errorf("worker %s: %w", addr, err)
		}
		if err != nil && ctx.Err() != nil { // another piece has ended the query
			return nil, last
		}
		ends := final(status, last)
		if ends != nil {
			result = "whole"
		}
		r.pieces.WithLabelValues(result).Inc()
		if err == nil || ends != nil {
			return []*Answer{answer}, ends
		}
		var process *memory.Error
		if errors.As(err, &process) { // of this process
			return nil, err
		}
		if result == "large" {
			if a, b, ok := s.halves(p.Step); ok {
				first, err := r.slice(ctx, a)
				if err != nil {
					return nil, err
				}
				second, err := r.slice(ctx, b)
				return append(first, second...), err
			}
			break
		}
		r.logger.Warn("a worker did not answer a piece of a query", "worker", addr, "tenant", p.Tenant, "piece", s, "result", result, "err", err)
		tried = append(tried, addr)
	}
	r.here.Lock()
	defer r.here.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", s, errors.Join(err, last))
	}
	r.pieces.WithLabelValues("local").Inc()
	answer, err := Here(ctx, p, last, r.local)
	if err != nil {
		return nil, err
	}
	return []*Answer{answer}, nil
}

// Here evaluates a piece in this process by local. last is the error of the last worker, nil if
// none was asked. Its errors are those of Run.
func Here(ctx context.Context, p *Piece, last error, local func(context.Context, *Piece) (*Answer, error)) (*Answer, error) {
	answer, err := local(ctx, p)
	if err == nil {
		return answer, nil
	}
	if ends := final(StatusOf(err), err); ends != nil {
		return nil, ends
	}
	return nil, fmt.Errorf("evaluate %s: %w", p.Slice(), errors.Join(err, last))
}

// take returns the least busy of the addresses that were not tried, "" if there is none. A function
// is tried again: take waits until it evaluates fewer pieces of the tenant than it may, and returns
// "" if ctx ends before. give must follow.
func (w *Workers) take(ctx context.Context, tenant string, addresses, tried []string) (best string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.function {
		for w.busy[tenant] >= len(w.addresses) {
			freed := w.freed
			w.mu.Unlock()
			select {
			case <-freed:
			case <-ctx.Done():
			}
			w.mu.Lock()
			if ctx.Err() != nil {
				return ""
			}
		}
		w.busy[tenant]++
		return w.addresses[0]
	}
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

// give ends a piece at an address; of a function, one of a tenant.
func (w *Workers) give(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[key]--; w.busy[key] == 0 {
		delete(w.busy, key)
	}
	close(w.freed)
	w.freed = make(chan struct{})
}

// A piece is slow if it takes slowFactor times as long as the longest one that has an answer, and
// slowLeast more; without one, after half of the time that the query has left.
const (
	slowFactor = 4
	slowLeast  = 5 * time.Second
)

var errSlow = errors.New("it took much longer than others, or half of the time that was left")

// attempt asks a worker for a piece. The status is that of its answer, 0 if there is none. Result
// "large" is only that of a function.
func (r *run) attempt(asked context.Context, addr string, p *Piece) (a *Answer, status int, result string, err error) {
	ctx, cancel := context.WithCancelCause(asked)
	defer cancel(nil)
	begin := time.Now()
	left := time.Duration(p.Timeout) * time.Millisecond
	if end, ok := asked.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	sent := *p
	sent.Timeout = max(1, left.Milliseconds()) // a function goes on without its sender
	body, err := sent.Encode()
	if err != nil {
		return nil, StatusOf(err), "failed", err
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
			r.mu.Lock()
			most := left / 2
			if r.longest > 0 {
				most = min(most, slowFactor*r.longest+slowLeast)
			}
			r.mu.Unlock()
			if time.Since(begin) > most {
				cancel(errSlow)
			}
		}
	}()
	a, status, err = r.ask(ctx, addr, p, body)
	switch {
	case err == nil:
		r.mu.Lock()
		r.longest = max(r.longest, time.Since(begin))
		r.mu.Unlock()
		return a, status, "ok", nil
	case context.Cause(ctx) == errSlow:
		return nil, 0, "slow", errSlow
	case r.function && status == http.StatusRequestEntityTooLarge:
		return nil, status, "large", err
	}
	return nil, status, "failed", err
}

// maxMessage is the largest size (bytes) of a worker's error that is read.
const maxMessage = 4 << 10

func (w *Workers) ask(ctx context.Context, addr string, p *Piece, body []byte) (*Answer, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, Path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.URL.Scheme, req.URL.Host = "http", addr
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(tenant.Header, p.Tenant)
	if c := auth.Credentials(ctx); c != "" {
		req.Header.Set("Authorization", c)
	}
	if a := request.From(ctx).Origin; a != nil {
		source, err := json.Marshal(a.Source)
		if err != nil {
			return nil, 0, err
		}
		req.Header.Set(request.SourceHeader, string(source))
	}
	res, err := w.client.Do(req)
	if errors.Is(err, lambda.ErrRequestTooLarge) {
		return nil, http.StatusRequestEntityTooLarge, err
	}
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
