// Package ruletest runs promtool's unit tests of rules: files that name rule files, input series,
// and the alerts and samples that are expected at some times
// (https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/). Verdicts,
// output and exit codes are promtool's.
package ruletest

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// file is a unit test file.
type file struct {
	RuleFiles          []string       `yaml:"rule_files"` // patterns; after read: paths
	EvaluationInterval model.Duration `yaml:"evaluation_interval,omitempty"`
	GroupEvalOrder     []string       `yaml:"group_eval_order"`
	Tests              []test         `yaml:"tests"`
	FuzzyCompare       bool           `yaml:"fuzzy_compare,omitempty"`
}

// test is a set of input series with the expectations about them.
type test struct {
	Name           string           `yaml:"name,omitempty"`
	Interval       model.Duration   `yaml:"interval"` // of the input series, and of groups without one
	Start          startTime        `yaml:"start_timestamp,omitempty"`
	Input          []inputSeries    `yaml:"input_series"`
	Alerts         []alertCase      `yaml:"alert_rule_test,omitempty"`
	Expressions    []expressionCase `yaml:"promql_expr_test,omitempty"`
	ExternalLabels labels.Labels    `yaml:"external_labels,omitempty"`
	ExternalURL    string           `yaml:"external_url,omitempty"`
}

// inputSeries is a series with its values in the notation of PromQL's tests.
type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// alertCase expects the alerts of a name that fire at a time.
type alertCase struct {
	EvalTime model.Duration  `yaml:"eval_time"`
	Name     string          `yaml:"alertname"`
	Expected []expectedAlert `yaml:"exp_alerts"`
}

type expectedAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// expressionCase expects the result of an instant query.
type expressionCase struct {
	Expr     string           `yaml:"expr"`
	EvalTime model.Duration   `yaml:"eval_time"`
	Expected []expectedSample `yaml:"exp_samples"`
}

type expectedSample struct {
	Labels    string  `yaml:"labels"`
	Value     float64 `yaml:"value"`
	Histogram string  `yaml:"histogram"` // if it is not empty, Value has no meaning
}

// startTime is the time 0 of a test: RFC 3339 or seconds since 1970. The zero value is 1970.
type startTime struct{ time.Time }

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *startTime) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err != nil {
		return err
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		whole, part := math.Modf(s)
		const ms = 1000
		t.Time = time.Unix(int64(whole), int64(math.Round(part*ms))*int64(time.Millisecond)).UTC()
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("start_timestamp %q: want RFC 3339 or seconds since 1970", text)
	}
	t.Time = at
	return nil
}

// origin is the time 0 of the test.
func (t *test) origin() time.Time {
	if t.Start.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return t.Start.Time
}

// last is the latest time of an expectation, from the origin on.
func (t *test) last() time.Duration {
	var out model.Duration
	for i := range t.Alerts {
		out = max(out, t.Alerts[i].EvalTime)
	}
	for i := range t.Expressions {
		out = max(out, t.Expressions[i].EvalTime)
	}
	return time.Duration(out)
}

// defaultInterval is that of evaluations if the file names none.
const defaultInterval = model.Duration(time.Minute)
