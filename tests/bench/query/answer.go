package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// maxDifference is the relative difference up to which answers of Promlake and Prometheus count as
// equal: two versions of the engine add in different orders.
const maxDifference = 1e-9

// answer is a server's answer: values by time (ms) by the text of the series' labels.
type answer map[string]map[int64]float64

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

// parse reads the body of an answer with a vector or a matrix.
func parse(body []byte) (answer, error) {
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
	out := answer{}
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

func (a answer) points() (n int) {
	for _, p := range a {
		n += len(p)
	}
	return n
}

// comparison holds the differences between two answers.
type comparison struct {
	Series, Points int     // of the answer
	Missing, Extra int     // series that only the other has, that only this one has
	Apart          int     // points of common series that only one of them has
	Difference     float64 // largest relative one of common points
}

func compare(a, other answer) comparison {
	c := comparison{Series: len(a), Points: a.points()}
	for k, points := range other {
		own, ok := a[k]
		if !ok {
			c.Missing++
			continue
		}
		for t, v := range points {
			if w, ok := own[t]; ok {
				c.Difference = max(c.Difference, difference(v, w))
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

// difference returns the relative difference of two values: 0 if they are equal, infinite if only
// one of them is a number.
func difference(a, b float64) float64 {
	switch {
	case a == b || math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a-b) || math.IsInf(a-b, 0):
		return math.Inf(1)
	}
	return math.Abs(a-b) / max(math.Abs(a), math.Abs(b))
}

// equal returns nil if a equals Prometheus's answer.
func equal(a, prometheus answer) error {
	c := compare(a, prometheus)
	if c.Series == 0 {
		return errors.New("the answer is empty")
	}
	if c.Missing > 0 || c.Extra > 0 || c.Apart > 0 || c.Difference > maxDifference {
		return fmt.Errorf("the answer is not Prometheus's: %d series missing, %d extra, %d points in only one, values up to %.3g apart",
			c.Missing, c.Extra, c.Apart, c.Difference)
	}
	return nil
}

// alike returns nil if VictoriaMetrics answered the same question: with the same series at most of
// the same steps. Its values differ: its rate uses the sample before the range and does not
// extrapolate.
func alike(q question, a, victoria answer) error {
	if q.Ties {
		if len(a) == 0 || len(victoria) == 0 {
			return errors.New("an answer is empty")
		}
		return nil
	}
	c := compare(a, victoria)
	if c.Missing > 0 || c.Extra > 0 || c.Apart*20 > c.Points {
		return fmt.Errorf("the answer has another shape than VictoriaMetrics's: %d series missing, %d extra, %d of %d points in only one",
			c.Missing, c.Extra, c.Apart, c.Points)
	}
	return nil
}
