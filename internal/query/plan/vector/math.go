package vector

import (
	"math"
	"time"

	"github.com/prometheus/prometheus/model/value"
)

// ofNumber are the functions of a number. They keep NaN.
// Source: promql/functions.go upstream, as for all functions here.
var ofNumber = map[string]func(float64) float64{
	"abs": math.Abs, "ceil": math.Ceil, "floor": math.Floor, "exp": math.Exp, "sqrt": math.Sqrt, "ln": math.Log, "log2": math.Log2, "log10": math.Log10,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
	"neg": func(v float64) float64 { return -v },
	"deg": func(v float64) float64 { return v * 180 / math.Pi },
	"rad": func(v float64) float64 { return v * math.Pi / 180 },
	"sgn": func(v float64) float64 {
		switch {
		case v < 0:
			return -1
		case v > 0:
			return 1
		}
		return v
	},
}

// ofTime are the functions of a time, which is a number of seconds since 1970.
var ofTime = map[string]func(time.Time) float64{
	"minute":       func(t time.Time) float64 { return float64(t.Minute()) },
	"hour":         func(t time.Time) float64 { return float64(t.Hour()) },
	"day_of_month": func(t time.Time) float64 { return float64(t.Day()) },
	"day_of_week":  func(t time.Time) float64 { return float64(t.Weekday()) },
	"day_of_year":  func(t time.Time) float64 { return float64(t.YearDay()) },
	"days_in_month": func(t time.Time) float64 {
		return float64(32 - time.Date(t.Year(), t.Month(), 32, 0, 0, 0, 0, time.UTC).Day())
	},
	"month": func(t time.Time) float64 { return float64(t.Month()) },
	"year":  func(t time.Time) float64 { return float64(t.Year()) },
}

// ofNumbers are the functions of a number and two parameters, of which the second may be unused.
// The result may be absent.
var ofNumbers = map[string]func(v, a, b float64) float64{
	"round": func(v, to, _ float64) float64 {
		inverse := 1 / to
		return math.Floor(v*inverse+0.5) / inverse
	},
	"clamp": func(v, least, most float64) float64 {
		if most < least {
			return Absent
		}
		return math.Max(least, math.Min(most, v))
	},
	"clamp_min": func(v, least, _ float64) float64 { return math.Max(least, math.Min(math.Inf(1), v)) },
	"clamp_max": func(v, most, _ float64) float64 { return math.Max(math.Inf(-1), math.Min(most, v)) },
}

// mathOf returns a function of math by name.
func mathOf(name string) func(v, a, b float64) float64 {
	if f := ofNumber[name]; f != nil {
		return func(v, _, _ float64) float64 {
			if math.IsNaN(v) {
				return v
			}
			return f(v)
		}
	}
	if f := ofTime[name]; f != nil {
		return func(v, _, _ float64) float64 { return f(time.Unix(int64(v), 0).UTC()) }
	}
	return ofNumbers[name]
}

// Map applies a function of one value, named as in PromQL ("neg" is the unary minus), to all values.
// params are its parameters, one value per step.
func Map(fn string, rows []Row, params [][]float64, room Room) []Row {
	f, out := mathOf(fn), make([]Row, 0, len(rows))
	for _, r := range rows {
		a, b := r.V, r.V
		if len(params) > 0 {
			a = params[0]
		}
		if len(params) > 1 {
			b = params[1]
		}
		v, any := room(len(r.V)), false
		for k, x := range r.V {
			if v[k] = Absent; !value.IsStaleNaN(x) {
				v[k] = f(x, a[k], b[k])
			}
			any = any || !value.IsStaleNaN(v[k])
		}
		if any {
			out = append(out, Row{r.I, v})
		}
	}
	return out
}
