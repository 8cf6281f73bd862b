package ruler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// Patterns of http.ServeMux.
const (
	allPath     = "/config/v1/rules"
	namesPath   = allPath + "/{names...}" // a namespace, or a namespace and a group
	mimirPrefix = "/prometheus"
)

// Route is a request that the API answers.
type Route struct {
	Pattern string // as http.ServeMux has it
	Name    string // of the handler, in metrics
	Changes bool   // the rules
	Handler http.Handler
}

// api answers the requests. It is immutable.
type api struct {
	settings Settings
	store    rulestore.Store
	parser   parser.Parser
	changed  func()
	limited  *prometheus.CounterVec // edits that a limit refused
	memory   *memory.Budget         // of the process
	logger   *slog.Logger
}

// Routes returns the API over a store. changed is called after an edit was stored. They are none if
// the API is not enabled. The bodies of requests count in the memory budget. It counts in reg:
//
//	promlake_ruler_limited_total{limit}   groups, rules, bytes, expression, template, name, memory
func Routes(s Settings, store rulestore.Store, changed func(), budget *memory.Budget, reg prometheus.Registerer, logger *slog.Logger) []Route {
	if !s.Enabled {
		return nil
	}
	settings.Fill(&s)
	c := telemetry.Metrics{Registerer: reg, Prefix: "promlake_ruler_"}.CountersOf("limited_total",
		"Changes of rule groups that were refused because of a limit: groups, bytes and memory of a tenant, rules of a group, expression or template of a rule, length of a name, fields of a mapping.",
		"limit", limitGroups, limitRules, limitBytes, limitFields, limitExpression, limitTemplate, rulestore.LimitName, rulestore.LimitMemory)
	a := &api{settings: s, store: store, parser: parser.NewParser(s.Parser), changed: changed, limited: c, memory: budget, logger: logger}
	var all []Route
	for _, r := range []struct {
		method, path string
		answer       func(*http.Request) (any, error)
	}{
		{http.MethodGet, allPath, a.list},
		{http.MethodGet, namesPath, a.get},
		{http.MethodPost, namesPath, a.set},
		{http.MethodDelete, namesPath, a.remove},
	} {
		h := a.handler(r.answer)
		for _, prefix := range []string{"", mimirPrefix} {
			all = append(all, Route{Pattern: r.method + " " + prefix + r.path, Name: r.path, Changes: r.method != http.MethodGet, Handler: h})
		}
	}
	return all
}

// names returns the namespace of a request's path, and the group, if most is 2 and there is one. A
// wildcard of http.ServeMux for each would not match a name that is a slash.
func names(r *http.Request, most int) (namespace, group string, err error) {
	_, rest, _ := strings.Cut(r.URL.EscapedPath(), allPath+"/")
	parts := strings.Split(rest, "/")
	if len(parts) > most || slices.Contains(parts, "") {
		return "", "", &failure{http.StatusNotFound, errors.New("the path has no such page: a slash in a name is written %2F")}
	}
	for i, to := range []*string{&namespace, &group}[:len(parts)] {
		if *to, err = url.PathUnescape(parts[i]); err != nil {
			return "", "", bad(err)
		}
	}
	return namespace, group, nil
}

// list answers with the groups of all namespaces, by namespace. As with Mimir, no rules are an
// empty mapping.
func (a *api) list(r *http.Request) (any, error) {
	rules, _, err := rulestore.Read(r.Context(), a.store, tenant.From(r.Context()))
	if err != nil {
		return nil, err
	}
	all := map[string][]rulestore.Group{}
	for _, ns := range rules.Namespaces {
		all[ns.Name] = ns.Groups
	}
	return all, nil
}

// get answers with one group, or as list with those of one namespace.
func (a *api) get(r *http.Request) (any, error) {
	namespace, group, err := names(r, 2)
	if err != nil {
		return nil, err
	}
	rules, _, err := rulestore.Read(r.Context(), a.store, tenant.From(r.Context()))
	if err != nil {
		return nil, err
	}
	if group != "" {
		return rules.Group(namespace, group)
	}
	all := map[string][]rulestore.Group{}
	if groups := rules.Namespace(namespace); len(groups) > 0 {
		all[namespace] = groups
	}
	return all, nil
}

// set adds or replaces the group of the body.
func (a *api) set(r *http.Request) (any, error) {
	namespace, _, err := names(r, 1)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(namespace) {
		return nil, bad(errors.New("the namespace is not UTF-8"))
	}
	_, work, err := a.memory.Start(r.Context())
	if err != nil {
		return nil, err
	}
	defer work.End()
	body, err := io.ReadAll(io.TeeReader(r.Body, charging{work}))
	if err != nil {
		if errors.Is(err, memory.ErrMemory) {
			return nil, err
		}
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &failure{http.StatusRequestEntityTooLarge, &rulestore.LimitError{Name: limitBytes, What: "bytes of the body, at least", Got: tooLarge.Limit + 1, Max: tooLarge.Limit, Flag: "--ruler.max-bytes-per-tenant"}}
		}
		return nil, bad(fmt.Errorf("read the body: %w", err))
	}
	values := 1
	for _, c := range body {
		switch c {
		case '\n', ',', ':', '-', '[', '{', '*':
			values++
		}
	}
	if err := work.Charge(int64(values)*nodeBytes + 2*int64(len(body))); err != nil {
		return nil, err
	}
	group, err := a.parse(body)
	if err == nil {
		err = a.settings.Names(namespace, group)
	}
	if err != nil {
		return nil, bad(err)
	}
	return nil, a.commit(r.Context(), func(old rulestore.Rules) (rulestore.Rules, error) {
		next := old.Set(namespace, group)
		if err := a.settings.admits(old, next); err != nil {
			return old, bad(fmt.Errorf("rule group %q: %w", group.Name, err))
		}
		return next, nil
	})
}

// remove removes one group, or all groups of a namespace.
func (a *api) remove(r *http.Request) (any, error) {
	namespace, group, err := names(r, 2)
	if err != nil {
		return nil, err
	}
	return nil, a.commit(r.Context(), func(old rulestore.Rules) (rulestore.Rules, error) {
		if group == "" {
			return old.RemoveNamespace(namespace)
		}
		return old.Remove(namespace, group)
	})
}

// commit edits the rules of the request's tenant.
func (a *api) commit(ctx context.Context, edit func(rulestore.Rules) (rulestore.Rules, error)) error {
	id := tenant.From(ctx)
	next, err := rulestore.Commit(ctx, a.store, id, edit)
	if err != nil {
		return err
	}
	a.logger.Info("rules were changed", "tenant", id, "generation", next.Generation, "groups", next.Groups())
	a.changed()
	return nil
}
