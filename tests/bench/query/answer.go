package query

import (
	"errors"
	"fmt"

	"github.com/promlake/promlake/tests/bench/answer"
)

// equal returns nil if a equals Prometheus's answer.
func equal(a, prometheus answer.Answer) error {
	c := answer.Compare(a, prometheus)
	if c.Series == 0 {
		return errors.New("the answer is empty")
	}
	if c.Missing > 0 || c.Extra > 0 || c.Apart > 0 || c.Difference > answer.MaxDifference {
		return fmt.Errorf("the answer is not Prometheus's: %d series missing, %d extra, %d points in only one, values up to %.3g apart",
			c.Missing, c.Extra, c.Apart, c.Difference)
	}
	return nil
}

// alike returns nil if VictoriaMetrics answered the same question: with the same series at most of
// the same steps. Its values differ: its rate uses the sample before the range and does not
// extrapolate.
func alike(q Question, a, victoria answer.Answer) error {
	if q.Ties {
		if len(a) == 0 || len(victoria) == 0 {
			return errors.New("an answer is empty")
		}
		return nil
	}
	c := answer.Compare(a, victoria)
	if bare := a.WithoutNames(); c.Missing > 0 && len(bare) == len(a) {
		// some functions keep the name of the metric in VictoriaMetrics
		c = answer.Compare(bare, victoria.WithoutNames())
	}
	if c.Missing > 0 || c.Extra > 0 || c.Apart*20 > c.Points {
		return fmt.Errorf("the answer has another shape than VictoriaMetrics's: %d series missing, %d extra, %d of %d points in only one",
			c.Missing, c.Extra, c.Apart, c.Points)
	}
	return nil
}
