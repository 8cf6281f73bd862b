package resource

import (
	"fmt"
	"strings"
)

// expression generates a random expression, usually valid.
func (c *client) expression(depth int) string {
	if depth <= 0 || c.rng.IntN(6) == 0 {
		return c.leaf()
	}
	sub := func() string { return c.expression(depth - 1) }
	switch c.rng.IntN(9) {
	case 0:
		return c.pick("sum", "avg", "count", "stddev", "group", "min") + c.pick("", " by (instance)", " without (number)") + " (" + sub() + ")"
	case 1:
		return c.pick("topk", "bottomk", "quantile", "limitk") + "(" + c.pick("1", "0.5", "1e9", "NaN") + ", " + sub() + ")"
	case 2:
		return "(" + sub() + ") " + c.pick("+", "-", "*", "/", "^", "% on(number)", "and", "or", "unless", "== bool", "> on(instance) group_left()") + " (" + sub() + ")"
	case 3:
		return c.pick("rate", "sum_over_time", "quantile_over_time", "count_over_time", "deriv", "absent_over_time", "holt_winters") +
			"((" + sub() + ")[" + c.duration() + ":" + c.pick("", c.duration()) + "])"
	case 4:
		return fmt.Sprintf(`label_replace(%s, "%s", "%s", "%s", "%s")`, sub(), c.pick("a", "number", "__name__", ""), c.pick("$1", "x", strings.Repeat("$1", 500)),
			c.pick("instance", "number"), c.pick("(.*)", "(.+)-(.+)", "(a|b)*", "["))
	case 5:
		return fmt.Sprintf(`label_join(%s, "joined", "%s", "instance", "number", "joined")`, sub(), strings.Repeat("-", 1+c.rng.IntN(1000)))
	case 6:
		return c.pick("abs", "ln", "exp", "sort", "sort_desc", "absent", "scalar", "vector", "timestamp", "histogram_sum") + "(" + sub() + ")"
	case 7:
		return c.selector() + c.pick(" offset ", " @ ", " offset -") + c.pick("5m", "100y", "1", "start()", "end()")
	default:
		return strings.Repeat(c.pick("-", "(", "ln("), 1+c.rng.IntN(2000)) + sub()
	}
}

func (c *client) leaf() string {
	return c.pick("1", "NaN", "vector(1)", "time()", c.selector(), c.selector(), c.selector(), "rate("+c.selector()+"["+c.duration()+"])")
}

func (c *client) selector() string {
	return c.pick("up", "up", `up{number="7"}`, `up{number=~"1.*"}`, `{__name__=~".+"}`, fmt.Sprintf("random_%d", c.rng.IntN(50)), `up{instance!~"host-[0-5].*"}`, `{}`)
}

func (c *client) duration() string {
	return c.pick("1ms", "1s", "15s", "5m", "1h", "30d", "100y", "292y")
}

func (c *client) pick(of ...string) string { return of[c.rng.IntN(len(of))] }
