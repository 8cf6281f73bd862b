package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type queryCmd struct {
	Expr string `arg:"" help:"PromQL expression."`

	Store   string        `name:"store" default:"file://./data" help:"Object store to read; no server is needed."`
	URL     string        `name:"url" placeholder:"URL" help:"Server to ask instead of a store."`
	Token   string        `name:"token" placeholder:"TOKEN" secret:"" help:"Token for the server; better set by its variable, for arguments can be seen in process lists."`
	Tenant  string        `name:"tenant" placeholder:"NAME" help:"Tenant whose data is asked. Default: the token's, if it has one, otherwise anonymous."`
	Time    string        `name:"time" placeholder:"T" help:"Evaluation time of an instant query: RFC 3339, seconds since 1970, or now-1h. Default: now."`
	Start   string        `name:"start" placeholder:"T" help:"First step of a range query."`
	End     string        `name:"end" placeholder:"T" help:"Last step of a range query. Default: now."`
	Step    time.Duration `name:"step" placeholder:"DURATION" help:"Distance of a range query's steps. Default: 250 steps, at least 1s apart."`
	Explain bool          `name:"explain" help:"Print how the query is answered, with the SQL that DuckDB runs, instead of the answer."`
	Analyze bool          `name:"analyze" help:"With --explain: run the query, and print times and counts of its parts."`
	Format  string        `name:"format" default:"table" enum:"table,json" help:"How the answer is printed: ${enum}."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// Run asks and prints.
func (c *queryCmd) Run(ctx context.Context, io flags.Streams, vs flags.Values) (err error) {
	q, err := newQuestion(c.Expr, c.Time, c.Start, c.End, c.Step, time.Now())
	if err != nil {
		return err
	}
	if c.Analyze && !c.Explain {
		return errors.New("--analyze belongs to --explain")
	}
	from := source{c.URL, c.Store, c.Tenant, c.Token, c.Log, c.Query}
	client, done, err := from.client(ctx, io, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if c.Explain {
		return q.explain(ctx, client, from.address(), c.Analyze, io.Out, c.Format)
	}
	path, form := q.request()
	var a answer
	if err := ask.PostJSON(ctx, client, from.address()+path, form, math.MaxInt64, &a); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	for _, note := range slices.Concat(a.Warnings, a.Infos) {
		if _, err := fmt.Fprintln(io.Err, "note:", note); err != nil {
			return fmt.Errorf("print note: %w", err)
		}
	}
	if c.Format == "json" {
		enc := json.NewEncoder(io.Out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a.Data); err != nil {
			return fmt.Errorf("print answer: %w", err)
		}
		return nil
	}
	v, err := a.Data.value()
	if err != nil {
		return err
	}
	if err := printTable(io.Out, v); err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	return nil
}

// parseTime reads a flag's point in time: "now", "now-1h" or "now+1h" with a duration as in PromQL,
// RFC 3339, or seconds since 1970 with a fraction; "" is now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if offset, ok := strings.CutPrefix(text, "now"); ok || text == "" {
		if offset == "" {
			return now, nil
		}
		d, err := model.ParseDuration(offset[1:])
		switch {
		case err == nil && offset[0] == '-':
			return now.Add(-time.Duration(d)), nil
		case err == nil && offset[0] == '+':
			return now.Add(time.Duration(d)), nil
		}
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < 1<<40 {
		return time.UnixMilli(int64(math.Round(s * 1000))).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--%s %q: want now-1h, RFC 3339 or seconds since 1970", flag, text)
	}
	return t, nil
}

// parseRange reads --start and --end.
func parseRange(start, end string, now time.Time) (from, to time.Time, err error) {
	if from, err = parseTime("start", start, now); err == nil {
		to, err = parseTime("end", end, now)
	}
	return from, to, err
}

type readCmd struct {
	Store  string `name:"store" required:"" placeholder:"URL" help:"Object store to read."`
	Socket string `name:"socket" required:"" placeholder:"PATH" help:"Unix socket to create. Whoever can open it reads every tenant, so its directory should be private."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// readEnd is how long requests may take to notice that nobody waits for them.
const readEnd = 20 * time.Second

// Run serves the query API on the socket until the standard input or ctx ends. It writes a line
// when it serves.
func (c *readCmd) Run(ctx context.Context, streams flags.Streams, vs flags.Values) (err error) {
	h, done, err := queryOf(ctx, c.Store, c.Log, c.Query, streams, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", c.Socket)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The process that started this one holds the other end of the input, and the kernel closes it
	// when that process ends in any way.
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, streams.In) // an error is an end, too
	}()
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if _, err := fmt.Fprintln(streams.Out, "ready"); err != nil {
		cancel()
	}
	select {
	case err = <-served:
		cancel()
	case <-ctx.Done():
	}
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), readEnd)
	defer stop()
	if failed := srv.Shutdown(late); failed != nil {
		return errors.Join(err, fmt.Errorf("end requests: %w", failed), srv.Close())
	}
	return err
}

// question is an instant query (step 0, at end) or a range query.
type question struct {
	expr       string
	start, end time.Time
	step       time.Duration
}

// maxDefaultSteps is how many steps a range query has whose step is not given.
const maxDefaultSteps = 250

func newQuestion(expr, at, start, end string, step time.Duration, now time.Time) (question, error) {
	if start == "" {
		if end != "" || step != 0 {
			return question{}, errors.New("--end and --step belong to a range query: give --start too")
		}
		t, err := parseTime("time", at, now)
		return question{expr: expr, end: t}, err
	}
	if at != "" {
		return question{}, errors.New("--time belongs to an instant query, --start to a range query: give one of them")
	}
	from, to, err := parseRange(start, end, now)
	if err != nil {
		return question{}, err
	}
	if step == 0 {
		step = max(time.Second, (to.Sub(from) / maxDefaultSteps).Truncate(time.Second))
	}
	if step < time.Millisecond || to.Before(from) {
		return question{}, fmt.Errorf("range from %s to %s by %s: want an end after the start and a step of at least 1ms", from, to, step)
	}
	return question{expr: expr, start: from, end: to, step: step}, nil
}

// request returns the HTTP API's path and form of the question.
func (q question) request() (path string, form url.Values) {
	form = url.Values{"query": {q.expr}}
	if q.step == 0 {
		form.Set("time", ask.Seconds(q.end.UnixMilli()))
		return "/api/v1/query", form
	}
	form.Set("start", ask.Seconds(q.start.UnixMilli()))
	form.Set("end", ask.Seconds(q.end.UnixMilli()))
	form.Set("step", ask.Seconds(q.step.Milliseconds()))
	return "/api/v1/query_range", form
}

// answer is what the HTTP API answers to queries that succeed.
type answer struct {
	Warnings []string   `json:"warnings"`
	Infos    []string   `json:"infos"`
	Data     resultData `json:"data"`
}

// resultData is a query's result as the API writes it.
type resultData struct {
	Type   model.ValueType `json:"resultType"`
	Result json.RawMessage `json:"result"`
}

// value decodes the result.
func (d resultData) value() (model.Value, error) {
	switch d.Type {
	case model.ValVector:
		return decode(d.Result, model.Vector{})
	case model.ValMatrix:
		return decode(d.Result, model.Matrix{})
	case model.ValScalar:
		v, err := decode(d.Result, model.Scalar{})
		return &v, err
	case model.ValString:
		v, err := decode(d.Result, model.String{})
		return &v, err
	default:
		return nil, fmt.Errorf("read answer: unknown result type %s", d.Type)
	}
}

func decode[V any](raw json.RawMessage, v V) (V, error) {
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("read answer: %w", err)
	}
	return v, nil
}
