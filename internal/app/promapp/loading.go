package promapp

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/rulestore"
)

var (
	_ rules.GroupLoader = fileLoader{}
	_ rules.GroupLoader = (*tenantLoader)(nil)
)

// fileLoader reads rule files from the disk, or from the configuration if it has their text.
type fileLoader struct {
	parser parser.Parser
	texts  func(path string) ([]byte, bool)
	logger *slog.Logger
}

// Load implements rules.GroupLoader.
func (l fileLoader) Load(path string, ignoreUnknownFields bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	if text, ok := l.texts(path); ok {
		return rulefmt.Parse(text, ignoreUnknownFields, scheme, l.parser, l.logger)
	}
	return rulefmt.ParseFile(path, ignoreUnknownFields, scheme, l.parser, l.logger)
}

// Parse implements rules.GroupLoader.
func (l fileLoader) Parse(expr string) (parser.Expr, error) { return parsed(l.parser, expr) }

// tenantLoader returns the groups that a tenant has set: a namespace is what a file is elsewhere.
type tenantLoader struct {
	parser parser.Parser
	rules  atomic.Pointer[rulestore.Rules]
}

// Load implements rules.GroupLoader. The groups were checked when they were set.
func (l *tenantLoader) Load(namespace string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	out := &rulefmt.RuleGroups{}
	for _, g := range l.rules.Load().Namespace(namespace) {
		out.Groups = append(out.Groups, g.Upstream())
	}
	return out, nil
}

// Parse implements rules.GroupLoader.
func (l *tenantLoader) Parse(expr string) (parser.Expr, error) {
	e, err := parsed(l.parser, expr)
	if err != nil {
		return nil, fmt.Errorf("parse expression %s: %w", expr, err)
	}
	return e, nil
}
