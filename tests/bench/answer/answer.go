// Package answer reads the answers of Prometheus' HTTP API, and compares those of two servers.
package answer

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// MaxDifference is the relative difference up to which answers of Promlake and Prometheus count as
// equal: two versions of the engine add in different orders.
const MaxDifference = 1e-9

// Answer is a server's answer: values by time (ms) by the text of the series' labels.
type Answer map[string]map[int64]float64

// point is a sample as the HTTP API writes it: [seconds, "value"].
type point struct {
	T model.Time
	V float64
}

func (p *point) UnmarshalJSON(b []byte) error {
	var text string
	pair := []any{&p.T, &text}
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	p.V = v
	return err
}

// Parse reads the body of an answer with a vector or a matrix.
func Parse(body []byte) (Answer, error) {
	var a struct {
		Status string
		Data   struct {
			Result []struct {
				Metric map[string]string
				Value  *point
				Values []point
			}
		}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("parse answer: %w", err)
	}
	if a.Status != "success" {
		return nil, fmt.Errorf("parse answer: status %q", a.Status)
	}
	out := Answer{}
	for _, r := range a.Data.Result {
		if r.Value != nil {
			r.Values = append(r.Values, *r.Value)
		}
		points := map[int64]float64{}
		for _, p := range r.Values {
			points[int64(p.T)] = p.V
		}
		out[labels.FromMap(r.Metric).String()] = points
	}
	return out, nil
}

func (a Answer) points() (n int) {
	for _, p := range a {
		n += len(p)
	}
	return n
}

// named matches the name of the metric in the text of labels.
var named = regexp.MustCompile(`^\{__name__="[^"]*"(, |\})`)

// WithoutNames returns the answer without the names of metrics.
func (a Answer) WithoutNames() Answer {
	out := Answer{}
	for k, points := range a {
		out[named.ReplaceAllStringFunc(k, func(name string) string {
			if strings.HasSuffix(name, "}") {
				return "{}"
			}
			return "{"
		})] = points
	}
	return out
}

// Comparison holds the differences between two answers.
type Comparison struct {
	Series, Points int     // of the answer
	Missing, Extra int     // series that only the other has, that only this one has
	Apart          int     // points of common series that only one of them has
	Difference     float64 // largest relative one of common points
}

// Compare returns how an answer differs from another one.
func Compare(a, other Answer) Comparison {
	c := Comparison{Series: len(a), Points: a.points()}
	for k, points := range other {
		own, ok := a[k]
		if !ok {
			c.Missing++
			continue
		}
		for t, v := range points {
			if w, ok := own[t]; ok {
				c.Difference = max(c.Difference, Difference(v, w))
			} else {
				c.Apart++
			}
		}
		for t := range own {
			if _, ok := points[t]; !ok {
				c.Apart++
			}
		}
	}
	c.Extra = len(a) - (len(other) - c.Missing)
	return c
}

// Difference returns the relative difference of two values: 0 if they are equal, infinite if only
// one of them is a number.
func Difference(a, b float64) float64 {
	switch {
	case a == b || math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a-b) || math.IsInf(a-b, 0):
		return math.Inf(1)
	}
	return math.Abs(a-b) / max(math.Abs(a), math.Abs(b))
}
