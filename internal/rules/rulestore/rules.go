// Package rulestore keeps the rule groups of tenants in the store: one object per tenant, which is
// replaced by compare-and-swap, so that concurrent edits never lose one another.
package rulestore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Version is the version of documents that this package reads and writes.
const Version = 1

// Errors of edits and look-ups. Their texts are those of Mimir's answers.
var (
	ErrNoGroup     = errors.New("group does not exist")
	ErrNoNamespace = errors.New("group namespace does not exist")
)

// Rules are the rule groups of one tenant. They are immutable: an edit returns changed ones.
type Rules struct {
	Version    int         `json:"version"`
	Generation uint64      `json:"generation"` // of the document; each edit adds 1
	ID         ulid.ULID   `json:"id"`         // of this generation; its time orders nothing
	Namespaces []Namespace `json:"namespaces"` // ascending by name, none without groups
}

// Namespace is what a rule file is for Prometheus: its groups have distinct names.
type Namespace struct {
	Name   string  `json:"name"`
	Groups []Group `json:"groups"` // ascending by name
}

// Group is a rule group with the fields of Prometheus' rule files:
// https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/
type Group struct {
	Name        string            `json:"name" yaml:"name"`
	Interval    model.Duration    `json:"interval,omitempty" yaml:"interval,omitempty"`
	QueryOffset *model.Duration   `json:"query_offset,omitempty" yaml:"query_offset,omitempty"`
	Limit       int               `json:"limit,omitempty" yaml:"limit,omitempty"`
	Labels      map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Rules       []Rule            `json:"rules" yaml:"rules"`
}

// Rule is a recording or an alerting rule.
type Rule struct {
	Record        string            `json:"record,omitempty" yaml:"record,omitempty"`
	Alert         string            `json:"alert,omitempty" yaml:"alert,omitempty"`
	Expr          string            `json:"expr" yaml:"expr"`
	For           model.Duration    `json:"for,omitempty" yaml:"for,omitempty"`
	KeepFiringFor model.Duration    `json:"keep_firing_for,omitempty" yaml:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
}

// FromUpstream returns a group of upstream's package.
func FromUpstream(g rulefmt.RuleGroup) Group {
	out := Group{Name: g.Name, Interval: g.Interval, QueryOffset: g.QueryOffset, Limit: g.Limit, Labels: g.Labels, Rules: make([]Rule, 0, len(g.Rules))}
	for _, r := range g.Rules {
		out.Rules = append(out.Rules, Rule(r))
	}
	return out
}

// Upstream returns the group for upstream's package.
func (g Group) Upstream() rulefmt.RuleGroup {
	out := rulefmt.RuleGroup{Name: g.Name, Interval: g.Interval, QueryOffset: g.QueryOffset, Limit: g.Limit, Labels: g.Labels, Rules: make([]rulefmt.Rule, 0, len(g.Rules))}
	for _, r := range g.Rules {
		out.Rules = append(out.Rules, rulefmt.Rule(r))
	}
	return out
}

// Groups is the number of groups of all namespaces.
func (r Rules) Groups() (n int) {
	for _, ns := range r.Namespaces {
		n += len(ns.Groups)
	}
	return n
}

// Namespace returns the groups of a namespace; none if there is no such namespace.
func (r Rules) Namespace(name string) []Group {
	if at, ok := r.find(name); ok {
		return r.Namespaces[at].Groups
	}
	return nil
}

// Group returns a group, or ErrNoGroup.
func (r Rules) Group(namespace, name string) (Group, error) {
	groups := r.Namespace(namespace)
	at, ok := findGroup(groups, name)
	if !ok {
		return Group{}, ErrNoGroup
	}
	return groups[at], nil
}

// Set returns the rules with a group that is added, or that replaces the one of its name.
func (r Rules) Set(namespace string, g Group) Rules {
	groups := slices.Clone(r.Namespace(namespace))
	at, ok := findGroup(groups, g.Name)
	if ok {
		groups[at] = g
	} else {
		groups = slices.Insert(groups, at, g)
	}
	return r.with(namespace, groups)
}

// Remove returns the rules without a group, or ErrNoGroup.
func (r Rules) Remove(namespace, name string) (Rules, error) {
	groups := slices.Clone(r.Namespace(namespace))
	at, ok := findGroup(groups, name)
	if !ok {
		return r, ErrNoGroup
	}
	return r.with(namespace, slices.Delete(groups, at, at+1)), nil
}

// RemoveNamespace returns the rules without the groups of a namespace, or ErrNoNamespace.
func (r Rules) RemoveNamespace(name string) (Rules, error) {
	if len(r.Namespace(name)) == 0 {
		return r, ErrNoNamespace
	}
	return r.with(name, nil), nil
}

// with returns the rules with other groups of a namespace.
func (r Rules) with(namespace string, groups []Group) Rules {
	all := slices.Clone(r.Namespaces)
	at, ok := r.find(namespace)
	switch {
	case ok && len(groups) == 0:
		all = slices.Delete(all, at, at+1)
	case ok:
		all[at].Groups = groups
	case len(groups) > 0:
		all = slices.Insert(all, at, Namespace{namespace, groups})
	}
	r.Namespaces = all
	return r
}

func (r Rules) find(namespace string) (int, bool) {
	return slices.BinarySearchFunc(r.Namespaces, namespace, func(n Namespace, name string) int { return cmp.Compare(n.Name, name) })
}

func findGroup(groups []Group, name string) (int, bool) {
	return slices.BinarySearchFunc(groups, name, func(g Group, name string) int { return cmp.Compare(g.Name, name) })
}

// Same reports whether two groups are equal.
func Same(a, b Group) bool {
	offset := (a.QueryOffset == nil) == (b.QueryOffset == nil) && (a.QueryOffset == nil || *a.QueryOffset == *b.QueryOffset)
	return offset && a.Name == b.Name && a.Interval == b.Interval && a.Limit == b.Limit && maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.Rules, b.Rules, func(x, y Rule) bool {
			return x.Record == y.Record && x.Alert == y.Alert && x.Expr == y.Expr && x.For == y.For && x.KeepFiringFor == y.KeepFiringFor &&
				maps.Equal(x.Labels, y.Labels) && maps.Equal(x.Annotations, y.Annotations)
		})
}

// Encode returns the document of rules. Equal rules have equal bytes.
func Encode(r Rules) ([]byte, error) {
	if r.Namespaces == nil {
		r.Namespaces = []Namespace{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // expressions stay readable
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	return checksum.Append(b.Bytes())
}

// Decode reads a document. It returns checksum.ErrDamaged for damaged bytes, and an error for a
// version that it does not know.
func Decode(b []byte) (Rules, error) {
	var r Rules
	if err := checksum.Unmarshal(b, &r); err != nil {
		return Rules{}, fmt.Errorf("decode rules: %w", err)
	}
	if r.Version != Version {
		return Rules{}, fmt.Errorf("decode rules: version %d, this program reads %d", r.Version, Version)
	}
	if err := r.check(); err != nil {
		return Rules{}, fmt.Errorf("decode rules: %w", err)
	}
	return r, nil
}

// check returns an error if the document is not as Set and Remove leave it.
func (r Rules) check() error {
	if !ascending(r.Namespaces, func(n Namespace) string { return n.Name }) {
		return errors.New("the namespaces are not in ascending order")
	}
	for _, n := range r.Namespaces {
		if len(n.Groups) == 0 {
			return fmt.Errorf("namespace %q has no groups", n.Name)
		}
		if !ascending(n.Groups, func(g Group) string { return g.Name }) {
			return fmt.Errorf("the groups of namespace %q are not in ascending order", n.Name)
		}
	}
	return nil
}

// ascending reports whether names ascend and differ.
func ascending[T any](all []T, name func(T) string) bool {
	for i := 1; i < len(all); i++ {
		if name(all[i-1]) >= name(all[i]) {
			return false
		}
	}
	return true
}
