package seeds

import (
	"math"
	"math/rand/v2"
)

// A walk returns a function that returns the values of a series, one after the other. Its steps are
// normally distributed around a mean, with a standard deviation of 1 if it is not given.
// Measurements are the whole part of a walk, if nothing else is said.
type walk func(*rand.Rand) func() float64

// between is a walk from a value that stays within limits.
func between(rng *rand.Rand, mean, deviation, low, high, from float64) func() float64 {
	v := from
	return func() float64 {
		now := v
		v = min(max(v+float64(rng.NormFloat64()*deviation)+mean, low), high) // converted: not fused, so equal on all processors
		return now
	}
}

// whole has the whole parts of values.
func whole(next func() float64) func() float64 { return func() float64 { return math.Trunc(next()) } }

// percent is a walk from a random value that stays between 0 and 100.
func percent(rng *rand.Rand) func() float64 {
	return whole(between(rng, 0, 1, 0, 100, rng.Float64()*100))
}

// gauge is a walk from a value that stays between 0 and a limit.
func gauge(mean, limit, from float64) walk {
	return func(rng *rand.Rand) func() float64 { return whole(between(rng, mean, 1, 0, limit, from)) }
}

// counter is a walk from 0 that never falls: a step counts without its sign.
func counter(mean float64) walk {
	return func(rng *rand.Rand) func() float64 {
		v := 0.0
		return whole(func() float64 {
			now := v
			v += math.Abs(rng.NormFloat64() + mean)
			return now
		})
	}
}

// free is a walk from 0 without limits.
func free(mean float64) walk {
	return func(rng *rand.Rand) func() float64 {
		return whole(between(rng, mean, 1, math.Inf(-1), math.Inf(1), 0))
	}
}
