package rulestore

import (
	"fmt"

	"github.com/promlake/promlake/internal/base/settings"
)

// Limits bound what the rules of a tenant make a process keep. The tags are those of package
// settings.
type Limits struct {
	MaxNameBytes   int   `name:"ruler.max-name-bytes" default:"512" min:"1" help:"Length of the names of namespaces, rule groups and rules of a tenant. A group with a longer one is refused, and not evaluated." when:"Rarely."`
	MaxMemoryBytes int64 `name:"ruler.max-memory-per-tenant" type:"bytes" default:"64MiB" min:"64KiB" help:"Memory that the rule groups of a tenant take in a process that evaluates them, about: 32 KiB for each group, 2 KiB for each rule, 4 bytes for each byte of their texts. Groups beyond it are refused, and not evaluated." when:"Raise it if a tenant needs more rules; all tenants share a quarter of --memory-limit."`
}

// LimitError reports a rule group that a limit refuses.
type LimitError struct {
	Name     string // in metrics
	What     string // is limited
	Got, Max int64
	Flag     string // changes the limit; "": none does
}

// Error implements error.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("%s: %d, the limit is %d", e.What, e.Got, e.Max)
	if e.Flag != "" {
		text += " (" + e.Flag + ")"
	}
	return settings.ForOperator(text)
}

// The names of limits in metrics.
const (
	LimitName   = "name"
	LimitMemory = "memory"
)

// Names returns a *LimitError if a name of a group is too long.
func (l Limits) Names(namespace string, g Group) error {
	check := func(what, name string) error {
		if len(name) > l.MaxNameBytes {
			return &LimitError{LimitName, "bytes of the name of a " + what, int64(len(name)), int64(l.MaxNameBytes), "--ruler.max-name-bytes"}
		}
		return nil
	}
	if err := check("namespace", namespace); err != nil {
		return err
	}
	if err := check("rule group", g.Name); err != nil {
		return err
	}
	for _, r := range g.Rules {
		if err := check("rule", r.Record+r.Alert); err != nil {
			return err
		}
	}
	return nil
}

// Memory returns a *LimitError if groups that take this many bytes are too many.
func (l Limits) Memory(bytes int64) error {
	if bytes > l.MaxMemoryBytes {
		return &LimitError{LimitMemory, "bytes of memory of the tenant's rule groups", bytes, l.MaxMemoryBytes, "--ruler.max-memory-per-tenant"}
	}
	return nil
}

// The memory in bytes that a process which evaluates a group keeps, at most, about: for the group
// with its goroutine and metrics, for each rule, and for each byte of a text.
const (
	groupBytes = 32 << 10
	ruleBytes  = 2 << 10
	textBytes  = 4
	labelBytes = 128
)

// Bytes returns the memory that a process which evaluates the group keeps for it, at most, about.
// Parsed expressions are not kept.
func (g Group) Bytes() int64 {
	n := groupBytes + textBytes*len(g.Name) + labelled(g.Labels)
	for _, r := range g.Rules {
		n += ruleBytes + textBytes*(len(r.Record)+len(r.Alert)+len(r.Expr)) + labelled(r.Labels) + labelled(r.Annotations) + labelled(g.Labels)
	}
	return int64(n)
}

func labelled(ls map[string]string) (n int) {
	for name, value := range ls {
		n += labelBytes + textBytes*(len(name)+len(value))
	}
	return n
}

// Bytes is the memory of all groups.
func (r Rules) Bytes() (n int64) {
	for _, ns := range r.Namespaces {
		for _, g := range ns.Groups {
			n += g.Bytes()
		}
	}
	return n
}
