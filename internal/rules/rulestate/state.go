// Package rulestate is what a rule group remembers between two evaluations: the active alerts of
// its rules, the series that each rule wrote last, and results that are not delivered yet. It is
// one object per group, which is replaced by compare-and-swap, so that functions without memory can
// evaluate the group one after another, and may be killed at any time.
package rulestate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
)

// Version is the version of documents that this package reads and writes.
const Version = 1

// Group is the state of a rule group of a tenant.
type Group struct {
	Version   int       `json:"version"`
	ID        ulid.ULID `json:"id"` // of this state; its time orders nothing
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Evaluated is the time of the last evaluation whose results are here; zero before the first.
	Evaluated time.Time `json:"evaluated,omitzero"`
	Measured
	Rules  []Rule `json:"rules"`
	Outbox Outbox `json:"outbox"`
}

// Measured is what the clock said about the last evaluation of a group or rule. It is zero if the
// program that evaluated did not measure it. Results never depend on it.
type Measured struct {
	LastEvaluation time.Time `json:"lastEvaluation,omitzero"` // its beginning
	EvaluationTime float64   `json:"evaluationTime,omitzero"` // seconds
}

// Rule is the state of one rule, in the order of the group.
type Rule struct {
	// Key is the name of the rule and its labels. It finds the rule in a group that has changed.
	Key string `json:"key"`
	Measured
	// Series are those that the last successful evaluation wrote. Those that the next one does not
	// write become stale.
	Series []labels.Labels `json:"series,omitempty"`
	// Error is why the last evaluation failed; "" if it did not.
	Error string `json:"error,omitempty"`
	// Alerts of an alerting rule, ascending by labels: active ones, and resolved ones that are
	// still sent.
	Alerts []Alert `json:"alerts,omitempty"`
}

// maxErrorBytes is how much of an error a state keeps.
const maxErrorBytes = 1024

// Fail notes why an evaluation failed, in at most 1 KiB.
func (r *Rule) Fail(err error) {
	text := err.Error()
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes-len("…")] + "…"
	}
	r.Error = strings.ToValidUTF8(text, "") // the cut may be within a character
}

// Alert states.
const (
	Pending  = "pending"
	Firing   = "firing"
	Resolved = "resolved"
)

// Alert is one instance of an alerting rule, with the fields of upstream's rules.Alert.
type Alert struct {
	Labels      labels.Labels `json:"labels"`
	Annotations labels.Labels `json:"annotations"`
	State       string        `json:"state"`
	Value       Value         `json:"value"` // of the expression, when it last had a result

	ActiveAt        time.Time `json:"activeAt"`
	FiredAt         time.Time `json:"firedAt,omitzero"`
	ResolvedAt      time.Time `json:"resolvedAt,omitzero"`
	KeepFiringSince time.Time `json:"keepFiringSince,omitzero"`
	LastSentAt      time.Time `json:"lastSentAt,omitzero"`
	ValidUntil      time.Time `json:"validUntil,omitzero"`
}

// Outbox is what an evaluation has produced and what is to be delivered. A state that was read has
// an outbox that may be delivered already: delivering it again has no effect.
type Outbox struct {
	// Samples is a snappy block with a message io.prometheus.write.v2.Request; empty: none.
	Samples []byte `json:"samples,omitempty"`
	// Count is the number of samples.
	Count int `json:"count,omitempty"`
	// Notifications to Alertmanager, the oldest first.
	Notifications []Notification `json:"notifications,omitempty"`
}

// Empty reports whether there is nothing to deliver.
func (o *Outbox) Empty() bool { return len(o.Samples) == 0 && len(o.Notifications) == 0 }

// Notification is what Alertmanager is told about one alert.
type Notification struct {
	Labels       labels.Labels `json:"labels"`
	Annotations  labels.Labels `json:"annotations"`
	StartsAt     time.Time     `json:"startsAt"`
	EndsAt       time.Time     `json:"endsAt"`
	GeneratorURL string        `json:"generatorURL"`
}

// Value is a number whose JSON is a text, because JSON has neither NaN nor infinities.
type Value float64

// MarshalText implements encoding.TextMarshaler.
func (v Value) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(v), 'g', -1, 64), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Value) UnmarshalText(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	*v = Value(f)
	return err
}

// Idle reports whether nothing would be lost without the state but the time of the last evaluation.
func (g *Group) Idle() bool {
	return g.Outbox.Empty() && !slices.ContainsFunc(g.Rules, func(r Rule) bool { return len(r.Series) > 0 || len(r.Alerts) > 0 })
}
