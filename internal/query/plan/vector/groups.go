package vector

import (
	"math"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/kahansum"
)

// aggregations write the values of a group, of which all are absent at first, given the series that
// it has, in upstream's order.
// Source: evaluator.aggregation in upstream's promql/engine.go.
var aggregations = map[string]func(out []float64, members []Row, room Room){
	"sum": sumOf, "avg": averageOf, "min": leastOf, "max": greatestOf, "count": countOf, "group": oneOf,
	"stddev": deviationOf, "stdvar": varianceOf,
}

// Aggregate returns an aggregation, named as in PromQL, of each group that has a value. to has the
// group of each ordinal. phi is the parameter of quantile.
func Aggregate(op string, phi float64, rows []Row, to []uint32, room Room) []Row {
	f := aggregations[op]
	if op == "quantile" {
		f = func(out []float64, members []Row, _ Room) { quantileOf(phi, out, members) }
	}
	var out []Row
	for g, members := range byGroup(rows, to) {
		if len(members) > 0 {
			v := room.Blank(len(members[0].V))
			f(v, members, room)
			out = append(out, Row{uint32(g), v})
		}
	}
	return out
}

// byGroup returns the rows of each group, in their order. to has the group of each ordinal.
func byGroup(rows []Row, to []uint32) [][]Row {
	n := 0
	for _, r := range rows {
		n = max(n, int(to[r.I])+1)
	}
	counts := make([]int, n)
	for _, r := range rows {
		counts[to[r.I]]++
	}
	out, all := make([][]Row, n), make([]Row, len(rows))
	for g, c := range counts {
		out[g], all = all[:0:c], all[c:]
	}
	for _, r := range rows {
		out[to[r.I]] = append(out[to[r.I]], r)
	}
	return out
}

func sumOf(out []float64, members []Row, room Room) {
	c := room(len(out)) // compensations
	clear(c)
	for _, r := range members {
		addUp(out, c, r.V)
	}
	for k := range out {
		if !value.IsStaleNaN(out[k]) {
			out[k] += c[k]
		}
	}
}

// addUp adds values to sums, which are absent before the first, as upstream's kahansum.Inc does.
// That distinguishes cases to find what an addition loses. Knuth's six operations, which find the
// same number, take half the time, but may overflow at the limits of numbers.
func addUp(sums, c, values []float64) {
	const large = 1e300
	sums, c = sums[:len(values)], c[:len(values)]
	for k, f := range values {
		if value.IsStaleNaN(f) {
			continue
		}
		s := sums[k]
		if value.IsStaleNaN(s) {
			sums[k] = f
			continue
		}
		t := s + f
		if t < large && t > -large {
			b := t - s
			c[k] += (s - (t - b)) + (f - b)
			sums[k] = t
		} else {
			sums[k], c[k] = kahansum.Inc(f, s, c[k])
		}
	}
}

func averageOf(out []float64, members []Row, room Room) {
	c, n := room(len(out)), room(len(out))
	clear(c)
	clear(n)
	for _, r := range members {
		addUp(out, c, r.V)
		for k, f := range r.V {
			if !value.IsStaleNaN(f) {
				n[k]++
			}
		}
	}
	for k, sum := range out {
		switch {
		case n[k] == 0:
		case math.IsInf(sum, 0) || math.IsNaN(sum): // it may have overflowed
			out[k], _ = average(members, k)
		default:
			out[k] = sum/n[k] + c[k]/n[k]
		}
	}
}

// average returns the average of series at a step. It adds them up, and continues with the mean of
// those so far where the sum would be infinite.
func average(members []Row, k int) (mean float64, ok bool) {
	var sum, c, n float64
	running := false
	for _, r := range members {
		f := r.V[k]
		if value.IsStaleNaN(f) {
			continue
		}
		if n++; n == 1 {
			sum = f
			continue
		}
		if !running {
			s, next := kahansum.Inc(f, sum, c)
			if !math.IsInf(s, 0) {
				sum, c = s, next
				continue
			}
			running = true
			sum /= n - 1
			c /= n - 1
		}
		q := (n - 1) / n
		sum, c = kahansum.Inc(f/n, q*sum, q*c)
	}
	if running {
		return sum + c, true
	}
	return sum/n + c/n, n > 0
}

func leastOf(out []float64, members []Row, _ Room) {
	for _, r := range members {
		for k, f := range r.V {
			if !value.IsStaleNaN(f) && (out[k] > f || math.IsNaN(out[k])) { // absent is NaN
				out[k] = f
			}
		}
	}
}

func greatestOf(out []float64, members []Row, _ Room) {
	for _, r := range members {
		for k, f := range r.V {
			if !value.IsStaleNaN(f) && (out[k] < f || math.IsNaN(out[k])) {
				out[k] = f
			}
		}
	}
}

func countOf(out []float64, members []Row, _ Room) {
	for _, r := range members {
		for k, f := range r.V {
			switch {
			case value.IsStaleNaN(f):
			case value.IsStaleNaN(out[k]):
				out[k] = 1
			default:
				out[k]++
			}
		}
	}
}

func oneOf(out []float64, members []Row, _ Room) {
	for _, r := range members {
		for k, f := range r.V {
			if !value.IsStaleNaN(f) {
				out[k] = 1
			}
		}
	}
}
