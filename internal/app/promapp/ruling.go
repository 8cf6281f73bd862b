package promapp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/promconfig"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/spool"
	"github.com/promlake/promlake/internal/tenant"
)

// Querying answers the queries of rules.
type Querying interface {
	storage.Queryable
	Engine() promql.QueryEngine
}

// ruling is upstream's rule manager over the query stage.
type ruling struct {
	manager *rules.Manager
	tenant  string
	queue   *spool.Spool
	now     func() time.Time
	logger  *slog.Logger
	url     *url.URL
	answer  rules.QueryFunc
	offset  func() time.Duration
	cancel  context.CancelFunc
	done    chan struct{} // closed when the manager has ended
	started bool
}

func newRuling(s Settings, id string, q Querying, to storage.Appendable, queue *spool.Spool, notify rules.NotifyFunc, u *url.URL, offset func() time.Duration, texts func(string) ([]byte, bool), scheme model.ValidationScheme, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) *ruling {
	ctx, cancel := context.WithCancel(tenant.With(context.Background(), id))
	r := &ruling{
		tenant: id, queue: queue, now: now, logger: logger, url: u, offset: offset,
		answer: rules.EngineQueryFunc(q.Engine(), q), cancel: cancel, done: make(chan struct{}),
	}
	p := parser.NewParser(query.ParserOptions())
	r.manager = rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: scheme, ExternalURL: u, QueryFunc: r.query, NotifyFunc: notify, Context: ctx,
		Appendable: to, Queryable: q, Logger: logger, Registerer: reg,
		OutageTolerance: s.OutageTolerance, ForGracePeriod: s.GracePeriod, ResendDelay: s.ResendDelay,
		DefaultRuleQueryOffset: offset, MaxConcurrentEvals: s.MaxConcurrency, ConcurrentEvalsEnabled: s.MaxConcurrency > 1,
		Parser: p, GroupLoader: loader{p, texts, logger},
	})
	return r
}

// loader reads rule files from the disk, or from the configuration if it has their text. It
// implements rules.GroupLoader.
type loader struct {
	parser parser.Parser
	texts  func(path string) ([]byte, bool)
	logger *slog.Logger
}

// Load implements rules.GroupLoader.
func (l loader) Load(path string, ignoreUnknownFields bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	if text, ok := l.texts(path); ok {
		return rulefmt.Parse(text, ignoreUnknownFields, scheme, l.parser, l.logger)
	}
	return rulefmt.ParseFile(path, ignoreUnknownFields, scheme, l.parser, l.logger)
}

// Parse implements rules.GroupLoader.
func (l loader) Parse(expr string) (parser.Expr, error) { return l.parser.ParseExpr(expr) }

func (r *ruling) apply(c *promconfig.Config) error {
	files, err := c.RulePaths()
	if err != nil {
		return err
	}
	return r.manager.Update(time.Duration(c.GlobalConfig.EvaluationInterval), files, c.GlobalConfig.ExternalLabels, r.url.String(), r.iterate)
}

// maxWait bounds the time for which rules wait for samples that are not stored yet.
const maxWait = 10 * time.Second

// iterate evaluates a group once. The rules see what was committed before, because it is stored
// then, and because their reads begin afterwards.
func (r *ruling) iterate(ctx context.Context, g *rules.Group, at time.Time) {
	rules.DefaultEvalIterationFunc(r.fresh(ctx), g, at)
}

// fresh returns a context whose reads see everything that was committed until now. While the store
// is away they see what is stored.
func (r *ruling) fresh(ctx context.Context) context.Context {
	wait, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := r.queue.Sync(wait); err != nil && ctx.Err() == nil {
		r.logger.Warn("rules do not see the latest samples", "err", err)
	}
	return query.WithSince(ctx, r.now())
}

// query evaluates the expression of a rule. A rule that depends on another one of its group waits
// for the other's result.
func (r *ruling) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	if rule := rules.FromOriginContext(ctx); rule.Name != "" && !rule.NoDependencyRules {
		ctx = r.fresh(ctx)
	}
	return r.answer(ctx, expr, at)
}

func (r *ruling) start() {
	r.started = true
	go func() {
		defer close(r.done)
		r.manager.Run()
	}()
}

// stop ends the evaluation of rules; those under way are finished, or cancelled when ctx ends.
func (r *ruling) stop(ctx context.Context) error {
	defer r.cancel()
	if !r.started {
		return nil
	}
	defer context.AfterFunc(ctx, r.cancel)()
	r.manager.Stop()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the evaluation of rules: %w", ctx.Err())
	}
}
