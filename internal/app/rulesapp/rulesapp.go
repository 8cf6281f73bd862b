// Package rulesapp evaluates rules over a tenant's past: it says when an alert would have fired,
// and writes the results of recording rules as blocks.
package rulesapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Source names rules, and the data over which they are evaluated.
type Source struct {
	Files          []string          `name:"rules" required:"" sep:"none" placeholder:"FILE" help:"Rule file, named as the server names it, because its path and the name of the group determine when a group is evaluated. Repeatable."`
	Interval       time.Duration     `name:"evaluation-interval" default:"1m" min:"1ms" help:"Interval of groups that name none: global.evaluation_interval of the server."`
	QueryOffset    time.Duration     `name:"rule-query-offset" default:"0s" min:"0" help:"Offset of groups that name none: global.rule_query_offset of the server."`
	ExternalLabels map[string]string `name:"external-label" placeholder:"NAME=VALUE" help:"Label of the server's external_labels, for templates of alerts. Repeatable."`
	ExternalURL    string            `name:"web.external-url" placeholder:"URL" help:"URL of the server, for templates of alerts."`
}

// Lake is a store with its query stage.
type Lake struct {
	Store objstore.Store
	Query *query.Stage
}

// Open opens a lake over a store that exists. The caller calls end.
func Open(ctx context.Context, p process.Settings, q queryapp.Settings, logger *slog.Logger) (l *Lake, end func() error, err error) {
	l = &Lake{}
	_, end, err = process.Open(ctx, p, logger, queryapp.New(q, func(s *query.Stage) { l.Query = s }), func(_ context.Context, parts process.Parts) (process.Stage, error) {
		l.Store = parts.Store
		return process.Idle{}, nil
	})
	return l, end, err
}

// load reads the rules.
func (l *Lake) load(s Source) (*ruleeval.Rules, error) {
	return ruleeval.Load(ruleeval.Files{
		Paths: s.Files, Interval: s.Interval, QueryOffset: s.QueryOffset, Lookback: l.Query.Settings().LookbackDelta,
		ExternalLabels: labels.FromMap(s.ExternalLabels), ExternalURL: s.ExternalURL, Parser: parser.NewParser(query.ParserOptions()),
	})
}

// reader returns ctx whose reads are those of a tenant, and see everything that was stored before.
func reader(ctx context.Context, id string, now time.Time) (context.Context, error) {
	id, err := tenant.Parse(id)
	if err != nil {
		return nil, err
	}
	return query.WithSince(tenant.With(ctx, id), now), nil
}

// fatal reports whether an error of a query says nothing about the rule: the storage, a limit, the
// time or the memory failed.
func fatal(err error) bool {
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		storage  promql.ErrStorage
		samples  promql.ErrTooManySamples
		limit    *query.LimitError
		old      *query.TooOldError
		damaged  *query.DamagedError
		gone     *query.GoneError
		full     interface{ QueryLimit() bool }
	)
	return errors.As(err, &canceled) || errors.As(err, &timeout) || errors.As(err, &storage) || errors.As(err, &samples) || errors.As(err, &limit) ||
		errors.As(err, &old) || errors.As(err, &damaged) || errors.As(err, &gone) || errors.As(err, &full) ||
		errors.Is(err, memory.ErrMemory) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// check refuses a range without a time.
func check(start, end time.Time) error {
	if end.Before(start) {
		return fmt.Errorf("--start %s is after --end %s: want a start before the end", start.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339))
	}
	return nil
}

// noted describes evaluations that failed, "" if none did.
func noted(e *ruleeval.Evaluator) string {
	n, one := e.Failures()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d evaluations failed, as they would have live, such as %s", n, strings.TrimSpace(one.Error()))
}
