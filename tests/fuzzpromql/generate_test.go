package fuzzpromql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// generator generates random PromQL. Expressions are well typed but may fail; then both engines
// must fail alike.
type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// one calls one of some functions, selected at random by weight.
func (g generator) one(options ...option) string {
	sum := 0
	for _, o := range options {
		sum += o.weight
	}
	n := g.IntN(sum)
	for _, o := range options {
		if n -= o.weight; n < 0 {
			return o.write()
		}
	}
	panic("unreachable")
}

type option struct {
	weight int
	write  func() string
}

// query generates a whole query.
func (g generator) query() string {
	depth := 1 + g.IntN(4)
	return g.one(
		option{30, func() string { return g.vector(depth) }},
		option{2, func() string { return g.scalar(depth) }},
		option{2, func() string {
			return g.pick("sort", "sort_desc") + "(" + g.vector(depth-1) + ")"
		}},
		option{1, func() string {
			return g.pick("sort_by_label", "sort_by_label_desc") + "(" + g.vector(depth-1) + `, "i", "g")`
		}},
	)
}

var metrics = []string{"c_total", "c_total", "d_total", "m", "m", "n", "n", "odd", "info", "h_bucket", "h_bucket", "nh", "both", "lonely", "jobs_total", "c_total", "m", "n"}

// selector generates an instant selector without modifiers.
func (g generator) selector() string {
	var ms []string
	for range []int{0, 0, 0, 1, 1, 2}[g.IntN(6)] {
		ms = append(ms, g.pick(
			`g="g0"`, `g="g1"`, `g!="g0"`, `g=~"g[01]"`, `g=~"g.*"`, `g!~"g[12]"`, `i!="i2"`, `i=~"i0|i2"`, `i!=""`, `x!="1"`, `le!="1"`, `i=~"(i0|)"`,
			g.pick(`i="i1"`, `i=""`, `x="0"`, `x=""`, `le="+Inf"`, `version=~".+"`, `g="none"`),
		))
	}
	switch g.IntN(25) {
	case 0:
		return "{" + strings.Join(append(ms, g.pick(`__name__=~"c_total|d_total"`, `__name__=~"[mn]"`, `__name__=~".*_total"`, `__name__!~"h_bucket|nh|both|odd"`)), ",") + `,__name__!="x"}`
	case 1:
		return `{g="g0"` + strings.Join(append([]string{""}, ms...), ",") + "}"
	}
	name := g.pick(metrics...)
	if g.IntN(50) == 0 {
		name = "nowhere"
	}
	if len(ms) == 0 {
		return name
	}
	return name + "{" + strings.Join(ms, ",") + "}"
}

// duration selects a duration from the list, or one close to it.
func (g generator) duration(from ...time.Duration) string {
	d := from[g.IntN(len(from))]
	if g.IntN(8) == 0 {
		d += time.Duration(1+g.IntN(5000)) * time.Millisecond
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

func (g generator) window() string {
	if g.IntN(40) == 0 {
		return g.pick("step()", "step()*3", "max_of(step(),1m)", "range()+1m", "1m+30s", "2*(1m)")
	}
	return g.duration(15*time.Second, time.Minute, 2*time.Minute, 5*time.Minute, 5*time.Minute, 10*time.Minute, 30*time.Minute, 2*time.Hour)
}

// modifiers generates modifiers of a selector or subquery.
func (g generator) modifiers() (s string) {
	if g.IntN(7) == 0 {
		s += " offset " + g.pick("", "-") + g.duration(30*time.Second, time.Minute, 5*time.Minute, time.Hour)
	}
	if g.IntN(9) == 0 {
		s += " @ " + g.pick("start()", "end()", fmt.Sprintf("%.3f", float64(g.instant())/1000))
	}
	return s
}

// instant returns a time (ms) in or close to the data.
func (g generator) instant() int64 {
	t := dataStart() + g.Int64N(dataEnd()-dataStart())
	if g.IntN(10) == 0 {
		t += g.Int64N(3_600_000) - 1_800_000
	}
	if g.IntN(2) == 0 {
		t -= t % 60_000
	}
	return t
}

// extended generates, rarely, the modifiers that extend the range of selectors.
func (g generator) extended() string {
	if g.IntN(30) == 0 {
		return g.pick(" anchored", " smoothed")
	}
	return ""
}

func (g generator) matrix(depth int) string {
	if depth > 0 && g.IntN(5) == 0 {
		step := ""
		if g.IntN(4) > 0 {
			step = g.duration(15*time.Second, 30*time.Second, time.Minute, 97*time.Second, 5*time.Minute)
		}
		window := g.duration(time.Minute, 5*time.Minute, 20*time.Minute)
		return g.operand(depth-1) + "[" + window + ":" + step + "]" + g.modifiers()
	}
	return g.selector() + "[" + g.window() + "]" + g.extended() + g.modifiers()
}

// operand returns a vector, in brackets if necessary.
func (g generator) operand(depth int) string {
	if depth == 0 || g.IntN(3) == 0 {
		return g.selector() + g.modifiers()
	}
	return "(" + g.vector(depth) + ")"
}

func (g generator) scalar(depth int) string {
	return g.one(
		option{6, g.number},
		option{2, func() string { return "time()" }},
		option{1, func() string { return g.pick("pi()", "start()", "end()", "step()", "range()") }},
		option{2, func() string { return "scalar(" + g.vector(max(0, depth-1)) + ")" }},
		option{1, func() string {
			return g.scalar(0) + " " + g.pick("+", "-", "*", "/", "%", "^", "> bool", "== bool", "atan2") + " " + g.scalar(0)
		}},
		option{1, func() string { return g.pick("min_of", "max_of") + "(" + g.scalar(0) + ", " + g.scalar(0) + ")" }},
		option{1, func() string { return "-" + g.scalar(0) }},
	)
}

func (g generator) number() string {
	return g.pick("0", "1", "2", "-1", "0.5", "3.7", "100", "1e3", "-2.5e-3", "NaN", "Inf", "-Inf", "5m", "0x1F")
}
