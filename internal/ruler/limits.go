package ruler

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/expression"
	"github.com/promlake/promlake/internal/rulestore"
	"github.com/promlake/promlake/internal/telemetry"
)

// LimitError reports an edit that a limit refused.
type LimitError struct {
	Name     string // in metrics
	What     string // is limited
	Got, Max int64
	Flag     string // changes the limit
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d, the limit is %d (%s)", e.What, e.Got, e.Max, e.Flag)
}

// The limits of a tenant's rules, by their names in metrics.
const (
	limitGroups     = "groups"
	limitRules      = "rules"
	limitBytes      = "bytes"
	limitExpression = "expression" // expression.Limits
)

// admits returns a *LimitError if the rules are beyond the limits of a tenant. Rules that were
// beyond them before may become fewer.
func (s Settings) admits(before, after rulestore.Rules) error {
	if n := after.Groups(); n > s.MaxGroups && n > before.Groups() {
		return &LimitError{limitGroups, "rule groups of the tenant", int64(n), int64(s.MaxGroups), "--ruler.max-rule-groups-per-tenant"}
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
		return &LimitError{limitBytes, "bytes of the tenant's rule groups", n, s.MaxBytes, "--ruler.max-bytes-per-tenant"}
	}
	return nil
}

func size(r rulestore.Rules) (int64, error) {
	b, err := rulestore.Encode(r)
	return int64(len(b)), err
}

// limited counts the edits that a limit refused.
type limited struct{ *prometheus.CounterVec }

func newLimited(reg prometheus.Registerer) limited {
	c := telemetry.Registered(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promlake_ruler_limited_total",
		Help: "Changes of rule groups that were refused because of a limit: groups and bytes of a tenant, rules of a group, expression of a rule.",
	}, []string{"limit"}))
	for _, name := range []string{limitGroups, limitRules, limitBytes, limitExpression} {
		c.WithLabelValues(name)
	}
	return limited{c}
}

func (l limited) note(err error) {
	if e, ok := errors.AsType[*LimitError](err); ok {
		l.WithLabelValues(e.Name).Inc()
	} else if _, ok := errors.AsType[*expression.Error](err); ok {
		l.WithLabelValues(limitExpression).Inc()
	}
}
