package promapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

var (
	_ rules.GroupLoader = fileLoader{}
	_ rules.GroupLoader = (*tenantLoader)(nil)
)

// fileLoader reads rule files from the disk, or from the configuration if it has their text.
type fileLoader struct {
	parser    parser.Parser
	templates ruletemplate.Limits
	texts     func(path string) ([]byte, bool)
	logger    *slog.Logger
}

// Load implements rules.GroupLoader.
func (l fileLoader) Load(path string, ignoreUnknownFields bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	if text, ok := l.texts(path); ok {
		return l.templates.Parse(text, ignoreUnknownFields, scheme, l.parser, l.logger)
	}
	return l.templates.ParseFile(path, ignoreUnknownFields, scheme, l.parser, l.logger)
}

// Parse implements rules.GroupLoader.
func (l fileLoader) Parse(expr string) (parser.Expr, error) { return parsed(l.parser, expr) }

// tenantLoader returns the groups that a tenant has set: a namespace is what a file is elsewhere.
// One update at a time uses it.
type tenantLoader struct {
	groups map[string][]*compiled // by namespace
	next   []*formatted           // that upstream has not asked for: it asks in the order of the rules
}

// compiled is a group whose expressions were parsed. A group that did not change is not parsed
// again.
type compiled struct {
	rulestore.Group
	exprs []*formatted
}

// Load implements rules.GroupLoader. The groups were checked when they were set; their templates are
// checked again when they are evaluated.
func (l *tenantLoader) Load(namespace string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	out := &rulefmt.RuleGroups{}
	l.next = l.next[:0]
	for _, g := range l.groups[namespace] {
		out.Groups = append(out.Groups, g.Upstream())
		l.next = append(l.next, g.exprs...)
	}
	return out, nil
}

// Parse implements rules.GroupLoader.
func (l *tenantLoader) Parse(string) (parser.Expr, error) {
	e := l.next[0]
	l.next = l.next[1:]
	return e, nil
}

// compiled returns a group of the tenant that is loaded, or nil if it is another one.
func (l *tenantLoader) compiled(namespace string, g rulestore.Group) *compiled {
	for _, old := range l.groups[namespace] {
		if old.Name == g.Name && rulestore.Same(old.Group, g) {
			return old
		}
	}
	return nil
}

// compile parses the expressions of a group, one after another, until ctx ends. The memory of the
// largest one is acquired meanwhile.
func (e *evaluating) compile(ctx context.Context, g rulestore.Group) (*compiled, error) {
	out := &compiled{g, make([]*formatted, len(g.Rules))}
	if len(g.Rules) == 0 {
		return out, nil
	}
	all, most, none := make([]rules.Rule, len(g.Rules)), int64(0), labels.EmptyLabels()
	for i, r := range g.Rules {
		if all[i] = rules.Rule(rules.NewRecordingRule(r.Record, nil, none)); r.Alert != "" {
			all[i] = rules.NewAlertingRule(r.Alert, nil, 0, 0, none, none, none, "", false, nil)
		}
		most = max(most, expression.ParsedBytes(r.Expr))
	}
	if err := e.memory.TryAcquire(most); err != nil {
		return nil, err
	}
	defer e.memory.Release(most)
	a, err := e.dependencies.analyse(all, func(i int) (parser.Expr, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		expr, err := e.parser.ParseExpr(g.Rules[i].Expr)
		if err != nil {
			return nil, fmt.Errorf("parse the expression of rule %d: %w", i+1, err)
		}
		out.exprs[i] = &formatted{Text: expression.TextOf(expr)}
		return expr, nil
	})
	for _, f := range out.exprs {
		if err == nil {
			f.group = a
		}
	}
	return out, err
}

// reload reads the configuration again and applies it. If it cannot be read, the former one stays.
func (m *Monitor) reload() error {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	if m.met.stopped {
		return errors.New("the process is shutting down")
	}
	c, err := m.set.load(m.parts)
	if err == nil {
		err = m.apply(c)
	}
	m.met.note(err, m.parts.Now())
	if err != nil {
		m.parts.Logger.Error("the configuration was not reloaded", "file", m.set.ConfigFile, "err", err)
		return err
	}
	m.parts.Logger.Info("the configuration was reloaded", "file", m.set.ConfigFile)
	return nil
}

// Adopt applies a configuration to a process that is ready and has none. It stays until the process
// ends. If there is a configuration, nothing happens.
func (m *Monitor) Adopt(source Source) error {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	if m.Configured() {
		return nil
	}
	if m.met.stopped {
		return errors.New("the process is shutting down")
	}
	c, err := source(m.parts.URL, m.parts.Token, m.parts.Logger)
	if err == nil {
		err = m.apply(c)
	}
	m.met.note(err, m.parts.Now())
	m.adopted.Store(err == nil)
	return err
}

// onHangup calls f for every SIGHUP until the returned function is called, but not before ready is
// closed.
func onHangup(ready <-chan struct{}, f func()) (end func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		select {
		case <-ready:
		case <-done:
			return
		}
		for {
			select {
			case <-signals:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// graph leads the links of notifications, which are those of Prometheus' page, to the page.
func (m *Monitor) graph(w http.ResponseWriter, r *http.Request) {
	parameters := r.URL.Query()
	if m.tenant != tenant.Default && !parameters.Has(tenantLabel) {
		parameters.Set(tenantLabel, m.tenant)
	}
	// relative, so that it works behind a proxy that removes a prefix
	w.Header().Set("Location", "./#/explore?"+parameters.Encode())
	w.WriteHeader(http.StatusFound)
}

// Routes implements process.Stage: the links of notifications, and with a configuration Prometheus'
// endpoint for reloads and Alertmanager's for silences. Who may change rules may silence alerts.
func (m *Monitor) Routes() []process.Route {
	routes := []process.Route{{Pattern: "GET /graph", Name: "/graph", Access: auth.Public, Handler: http.HandlerFunc(m.graph)}}
	if !m.set.Configured() {
		return routes
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !m.set.Lifecycle {
			http.Error(w, "Lifecycle API is not enabled: set --web.enable-lifecycle.", http.StatusForbidden)
			return
		}
		if err := m.reload(); err != nil {
			http.Error(w, fmt.Sprintf("failed to reload config: %s", err), http.StatusInternalServerError)
		}
	})
	silence := http.HandlerFunc(m.silence)
	return append(routes,
		process.Route{Pattern: "GET " + silences, Name: silences, Access: auth.Read, Handler: silence},
		process.Route{Pattern: "POST " + silences, Name: silences, Access: auth.Admin, Handler: silence},
		process.Route{Pattern: "DELETE " + oneSilence + "{id}", Name: oneSilence, Access: auth.Admin, Handler: silence},
		process.Route{Pattern: "POST /-/reload", Name: "/-/reload", Access: auth.Operate, Handler: h},
		process.Route{Pattern: "PUT /-/reload", Name: "/-/reload", Access: auth.Operate, Handler: h},
	)
}

// formatted is the expression of a rule, of which only the text is kept: upstream's manager
// evaluates rules by it.
type formatted struct {
	*expression.Text
	group *analysis // of the rule's group; nil: upstream's manager asks for it
}

// analysis says for each rule of a group, by their indexes, which earlier rules it uses. uses is
// nil if that is not known: then the rules are evaluated one after another.
type analysis struct{ uses [][]int }

// dependencies is a controller of upstream's for rules whose expressions are formatted.
type dependencies struct {
	of     rules.RuleDependencyController
	parser parser.Parser
}

// AnalyseRules implements rules.RuleDependencyController.
func (d dependencies) AnalyseRules(all []rules.Rule) {
	if len(all) == 0 {
		return
	}
	var a *analysis
	if f, ok := all[0].Query().(*formatted); ok {
		a = f.group
	}
	if a == nil {
		var err error
		a, err = d.analyse(all, func(i int) (parser.Expr, error) { return d.parser.ParseExpr(all[i].Query().String()) })
		if err != nil { // the texts are the parser's
			return
		}
	}
	if a.uses == nil {
		return
	}
	users := make([][]rules.Rule, len(all))
	for i, r := range all {
		used := make([]rules.Rule, 0, len(a.uses[i]))
		for _, at := range a.uses[i] {
			used, users[at] = append(used, all[at]), append(users[at], r)
		}
		r.SetDependencyRules(used)
	}
	for i, r := range all {
		r.SetDependentRules(users[i])
	}
}

// analyse finds out by upstream's controller which rules of a group use which. It asks for the
// expression of each rule once, in their order, and holds one at a time.
func (d dependencies) analyse(all []rules.Rule, expr func(i int) (parser.Expr, error)) (*analysis, error) {
	before, uses, known := make([]rules.Rule, 0, len(all)), make([][]int, len(all)), true
	last := like(all[0], &parser.NumberLiteral{}) // upstream does not analyse the only rule of a group
	for i, r := range all {
		e, err := expr(i)
		if err != nil {
			return nil, err
		}
		if known {
			one := like(r, e)
			d.of.AnalyseRules(append(slices.Clone(before), one, last))
			found := one.DependencyRules()
			known = found != nil || len(all) == 1
			for _, f := range found {
				uses[i] = append(uses[i], slices.Index(before, f))
			}
			before = append(before, like(r, &parser.NumberLiteral{}))
		}
	}
	if !known {
		return &analysis{}, nil
	}
	return &analysis{uses}, nil
}

// like returns a rule with the kind and the name of another one, and an expression.
func like(r rules.Rule, e parser.Expr) rules.Rule {
	none := labels.EmptyLabels()
	if _, ok := r.(*rules.AlertingRule); ok {
		return rules.NewAlertingRule(r.Name(), e, 0, 0, none, none, none, "", false, nil)
	}
	return rules.NewRecordingRule(r.Name(), e, none)
}

// parsed returns the expression of a rule's text.
func parsed(p parser.Parser, text string) (parser.Expr, error) {
	e, err := p.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("parse expression %s: %w", text, err)
	}
	return &formatted{Text: expression.TextOf(e)}, nil
}
