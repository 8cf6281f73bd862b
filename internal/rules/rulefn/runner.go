package rulefn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/queue"
)

// Store is the part of objstore.Store that has the rules and their states. Its promises are those
// of objstore.
type Store interface {
	rulestate.Store
	objstore.Lister
}

// Reading answers the queries of rules for the tenant of their context.
type Reading interface {
	storage.Queryable
	Engine() promql.QueryEngine
}

// Sink makes the samples of rules durable.
type Sink interface {
	// Write returns when the samples of a message io.prometheus.write.v2.Request are durable, and
	// visible to reads that begin afterwards where the sink writes to the store. refused says what
	// breaks a rule or a limit and is not stored; to write it again is useless. With err it is not
	// known what is durable.
	Write(ctx context.Context, tenant string, message []byte, samples int) (refused, err error)
}

// Sender delivers notifications.
type Sender interface {
	// Send returns when each receiver has accepted the notifications of a tenant, the oldest first.
	Send(ctx context.Context, tenant string, all []rulestate.Notification) (notify.Delivery, error)
}

// Parts are what a Runner uses.
type Parts struct {
	Store   Store
	Reading Reading
	Sink    Sink
	Sender  Sender       // nil: nobody is notified
	Queue   queue.Sender // takes the work that is too much for one invocation; nil: there is none
	Parser  parser.Parser
	// Enter returns a context for the queries of a tenant, which see everything that was stored
	// before.
	Enter func(ctx context.Context, tenant string) context.Context
	// Retry reports whether a query failed for a reason that passes.
	Retry    func(error) bool
	Registry prometheus.Registerer
	Logger   *slog.Logger
	Now      func() time.Time // measures durations
}

// Runner evaluates rule groups. It is safe for concurrent use.
type Runner struct {
	Parts

	set     Settings
	options *Options
	met     *metrics

	mu        sync.Mutex
	tenants   map[string]*tenantRules // by tenant; they take maxKept together, or are those of one tenant
	kept      int64                   // bytes of memory of tenants
	delivered map[string]string       // versions of states whose outboxes are delivered, by key
}

// explore is the address of an expression on the page. Unlike a server, the stack's HTTP API has no
// route from /graph, the path of Prometheus' links.
const explore = "/#/explore?g0.expr="

// New returns a runner. It does no I/O.
func New(s Settings, p Parts) (*Runner, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	settings.Fill(&s.Limits)
	u, err := s.external()
	if err != nil {
		return nil, err
	}
	external, err := s.Notify.Labels()
	if err != nil {
		return nil, err
	}
	o := &Options{
		Parser: p.Parser, Interval: s.Interval, QueryOffset: s.QueryOffset, ResendDelay: s.Notify.Repeat(), ExternalURL: u, ExternalLabels: external,
		OutageTolerance: s.OutageTolerance, GracePeriod: s.GracePeriod,
		Link:      func(expr string) string { return u.String() + explore + url.QueryEscape(expr) },
		MaxSeries: s.MaxSeries, Retry: p.Retry, Now: p.Now, Logger: p.Logger,
		Templates: ruletemplate.NewGuard(s.Templates, p.Registry),
	}
	o.Prepare()
	return &Runner{Parts: p, set: s, options: o, met: newMetrics(p.Registry), tenants: map[string]*tenantRules{}, delivered: map[string]string{}}, nil
}

// Tick does the work of a scheduled time: it finds the groups of all tenants that are due, and
// evaluates them, or sends them to other invocations if they are too many and there is a queue.
// What fails is due again at the next tick. Its error is that of the tenants that failed.
func (r *Runner) Tick(ctx context.Context, at time.Time) error {
	begin := r.Now()
	at = at.Add(-r.set.SampleDelay)
	work, errs := r.survey(ctx, at)
	total := 0
	for _, w := range work {
		total += w.rules()
	}
	var sum Report
	if total > r.set.MaxRules && r.Queue != nil {
		if err := r.dispatch(ctx, at, work); err != nil {
			errs = append(errs, err)
		}
	} else {
		// No tenant is always the last one, for which there may be no time.
		from := rand.IntN(max(len(work), 1))
		var err error
		sum, err = r.all(ctx, slices.Concat(work[from:], work[:from]), at)
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	r.note(ctx, sum, total, r.Now().Sub(begin), err)
	return err
}

// note logs in one line what an invocation did.
func (r *Runner) note(ctx context.Context, sum Report, rules int, took time.Duration, err error) {
	attrs := []any{
		"rules", rules, "groups", sum.Groups, "evaluations", sum.Evaluations, "failed", sum.Failed, "missed", sum.Missed,
		"samples", sum.Samples, "notifications", sum.Notifications, "took_seconds", took.Seconds(),
	}
	if err != nil {
		r.Logger.ErrorContext(ctx, "evaluating rules failed", append(attrs, "err", err)...)
		return
	}
	r.Logger.InfoContext(ctx, "evaluated rules", attrs...)
}

// Report counts what an invocation did.
type Report struct {
	Groups        int   // evaluated at least once
	Evaluations   int   // of rules
	Failed        int   // evaluations of rules
	Missed        int64 // evaluations of groups that are too old to be made up for
	Samples       int
	Notifications int
}

// work are the groups of one tenant that one invocation evaluates.
type work struct {
	tenant string
	etag   string // of the tenant's rules
	groups []*group
}

func (w work) rules() (n int) {
	for _, g := range w.groups {
		n += g.Len()
	}
	return n
}

// wrap names the tenant in an error.
func (w work) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rules of tenant %s: %w", w.tenant, err)
}
