// Package ruler is Mimir's HTTP API for the rule groups of tenants:
// https://grafana.com/docs/mimir/latest/references/http-api/#ruler
// It checks groups by upstream's rules, and keeps them in the store (package rulestore).
package ruler

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Settings of the API. The tags are those of package settings. Flags that Mimir has are named as
// there.
type Settings struct {
	Enabled     bool          `name:"ruler.enable-api" basic:"" negatable:"" default:"true" help:"Serve the API by which tenants read and change their rule groups." when:"Switch it off if only --config.file may have rules."`
	MaxGroups   int           `name:"ruler.max-rule-groups-per-tenant" default:"500" min:"1" help:"Rule groups that a tenant may have. A further one is refused." when:"Raise it if a tenant needs more; each group is evaluated on its own."`
	MaxRules    int           `name:"ruler.max-rules-per-rule-group" default:"200" min:"1" help:"Rules that a rule group of a tenant may have. A larger group is refused." when:"Raise it if a tenant cannot divide a group."`
	MaxBytes    int64         `name:"ruler.max-bytes-per-tenant" type:"bytes" default:"4MiB" min:"1KiB" help:"Size of the object with all rule groups of a tenant, and of a request's body. A group with which it would be larger is refused." when:"Raise it for groups with long expressions and annotations."`
	MinInterval time.Duration `name:"ruler.min-rule-evaluation-interval" default:"1s" min:"1ms" help:"Shortest interval that a rule group of a tenant may set. A shorter one is refused." when:"Raise it to bound how much rules cost."`
	Application string        `name:"ruler.application" placeholder:"NAME" help:"Field application of /api/v1/status/buildinfo, by which Grafana decides whether its alerting page can change rules. Empty: there is no such field." when:"Set it to \"Grafana Mimir\" to edit rules in Grafana."`

	rulestore.Limits `embed:""`
	// Templates bound those of labels and annotations before they are parsed and expanded.
	Templates ruletemplate.Limits `embed:""`

	// Parser is the PromQL dialect of rules. It must be that of the engine that evaluates them.
	Parser parser.Options `kong:"-"`
	// Expressions bound the expressions of rules before they are parsed.
	Expressions expression.Limits `kong:"-"`
	// Timeout bounds one request.
	Timeout time.Duration `kong:"-" default:"30s" above:"0"`
}

// Validate returns an error that names the flags of invalid settings.
func (s Settings) Validate() error { return settings.Check(s) }

// The limits of a tenant's rules, by their names in metrics.
const (
	limitGroups     = "groups"
	limitRules      = "rules"
	limitBytes      = "bytes"
	limitFields     = "fields"
	limitExpression = "expression" // expression.Limits
	limitTemplate   = "template"   // ruletemplate.Limits
)

// admits returns a *rulestore.LimitError if the rules are beyond the limits of a tenant. Rules that
// were beyond them before may become fewer.
func (s Settings) admits(before, after rulestore.Rules) error {
	if n := after.Groups(); n > s.MaxGroups && n > before.Groups() {
		return &rulestore.LimitError{Name: limitGroups, What: "rule groups of the tenant", Got: int64(n), Max: int64(s.MaxGroups), Flag: "--ruler.max-rule-groups-per-tenant"}
	}
	old, err := size(before)
	if err != nil {
		return err
	}
	n, err := size(after)
	if err != nil {
		return err
	}
	if n > s.MaxBytes && n > old {
		return &rulestore.LimitError{Name: limitBytes, What: "bytes of the tenant's rule groups", Got: n, Max: s.MaxBytes, Flag: "--ruler.max-bytes-per-tenant"}
	}
	if n := after.Bytes(); n > before.Bytes() {
		return s.Limits.Memory(n)
	}
	return nil
}

func size(r rulestore.Rules) (int64, error) {
	b, err := rulestore.Encode(r)
	return int64(len(b)), err
}
