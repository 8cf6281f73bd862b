package ruler

import (
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// The limits of a tenant's rules, by their names in metrics.
const (
	limitGroups     = "groups"
	limitRules      = "rules"
	limitBytes      = "bytes"
	limitFields     = "fields"
	limitExpression = "expression" // expression.Limits
	limitTemplate   = "template"   // ruletemplate.Limits
)

// admits returns a *rulestore.LimitError if the rules are beyond the limits of a tenant. Rules that were
// beyond them before may become fewer.
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
