package ruletemplate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/prom/expression"
)

const (
	bytesPerStep = 16
	// stepsPerSample is for a sample of the answer to a query, stepsPerLabel for each of its labels:
	// they become a map.
	stepsPerSample, stepsPerLabel = 10, 2
	callSteps                     = 5 // of a defined template
	// patternPart is the inverse of the part of MaxBytes that a regular expression may have, with
	// its repetitions written out.
	patternPart = 4
	// quoted is how many bytes fmt makes of one byte at most, scalar what a number or an address
	// counts as.
	quoted, scalar = 6, 64
	// maxWidth is the largest width or precision of fmt.
	maxWidth = 1_000_000
	// transient is how many times MaxText the calls of fmt may estimate to write.
	transient = 16
)

// budget is what the templates of a rule may do in one evaluation. It is used by one goroutine.
type budget struct {
	Limits
	ctx     context.Context
	query   rules.QueryFunc
	steps   int
	text    int   // of the current expansion
	depth   int   // of its calls
	err     error // the first limit that was exceeded, or the end of ctx
	answers map[string]*answer
}

// answer is the result of a template's query.
type answer struct {
	vector promql.Vector
	err    error
	uses   int // of the expansions that follow
}

// end ends all expansions.
func (b *budget) end(err error) error {
	if b.err == nil {
		b.err = err
	}
	return b.err
}

// take counts steps.
func (b *budget) take(steps int) error {
	if b.steps += steps; b.steps > b.MaxSteps {
		return b.end(&Error{limitSteps, "steps at one evaluation of a rule", b.MaxSteps, b.steps, "--ruler.max-template-steps"})
	}
	if b.err == nil && b.ctx.Err() != nil {
		return b.end(context.Cause(b.ctx))
	}
	return b.err
}

// make counts text that was made.
func (b *budget) make(bytes int) error {
	if b.text += bytes; b.text > b.MaxText {
		return b.end(&Error{limitText, "bytes of text for one alert", b.MaxText, b.text, "--ruler.max-template-text"})
	}
	return b.take(bytes / bytesPerStep)
}

// length is that of a text or list. A map counts as its memory, other values as nothing.
func length(v reflect.Value) int {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice:
		return v.Len()
	case reflect.Map:
		return scalar * (4 + v.Len())
	}
	return 0
}

// funcs are the functions that instrumented adds, and those of text/template and upstream whose
// results may be large although their arguments are small.
func (b *budget) funcs() template.FuncMap {
	passing := func(count func(int) error) any {
		return func(v reflect.Value) (reflect.Value, error) { return v, count(length(v)) }
	}
	printing := func(print func(...any) string) any {
		return func(args ...any) (string, error) {
			if _, err := b.measure(args); err != nil {
				return "", err
			}
			return print(args...), nil
		}
	}
	return template.FuncMap{
		"__enter": func(steps int) (string, error) {
			if b.depth++; b.depth > b.MaxDepth {
				return "", b.end(b.tooDeep())
			}
			return "", b.take(callSteps + steps)
		},
		"__leave": func() string { b.depth--; return "" },
		"__steps": func(n int) (string, error) { return "", b.take(n) },
		"__text":  func(n int) (string, error) { return "", b.make(n) },
		"__read":  passing(func(n int) error { return b.take(n / bytesPerStep) }),
		"__made":  passing(b.make),
		"__printed": func(v any) (string, error) {
			n, err := b.size(reflect.ValueOf(v), true)
			if err != nil {
				return "", err
			}
			return "", b.make(n)
		},
		"print": printing(fmt.Sprint), "println": printing(fmt.Sprintln),
		"html": printing(template.HTMLEscaper), "js": printing(template.JSEscaper), "urlquery": printing(template.URLQueryEscaper),
		"printf":       b.printf,
		"match":        b.match,
		"reReplaceAll": b.replace,
	}
}

var errAddress = errors.New("a template prints the address of a value: select a part of it, such as its labels")

// size estimates the bytes that fmt makes of a value. It ends at the limit of text. Addresses are
// an error if a template can read them: it would not do the same thing twice.
func (b *budget) size(v reflect.Value, printed bool) (n int, err error) {
	var walk func(v reflect.Value, depth int)
	walk = func(v reflect.Value, depth int) {
		if n += 8; err != nil || n > transient*b.MaxText {
			return
		}
		switch v.Kind() {
		case reflect.Invalid:
		case reflect.String:
			n += v.Len()
		case reflect.Interface:
			walk(v.Elem(), depth)
		case reflect.Pointer:
			switch {
			case v.IsNil():
			case depth == 0 && (composite(v.Type().Elem()) || v.Type().Implements(reflect.TypeFor[fmt.Stringer]())):
				walk(v.Elem(), 1)
			case printed:
				n += scalar
			default:
				err = b.end(errAddress)
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i), depth+1)
			}
		case reflect.Map:
			for it := v.MapRange(); it.Next(); {
				walk(it.Key(), depth+1)
				walk(it.Value(), depth+1)
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				n += scalar
				return
			}
			for i := range v.NumField() {
				walk(v.Field(i), depth+1)
			}
		case reflect.Chan, reflect.Func, reflect.UnsafePointer:
			err = b.end(errAddress)
		default:
			n += scalar
		}
	}
	walk(v, 0)
	return n, err
}

// measure estimates the bytes that fmt makes of arguments, which must be within the limit of text.
func (b *budget) measure(args []any) (n int, err error) {
	for _, a := range args {
		one, err := b.size(reflect.ValueOf(a), false)
		if err != nil {
			return 0, err
		}
		n += one
	}
	if n > b.MaxText {
		return n, b.make(n)
	}
	return n, b.take(n / bytesPerStep)
}

// printf is fmt.Sprintf, for results that are within the limit of text.
func (b *budget) printf(format string, args ...any) (string, error) {
	most, err := b.measure(args)
	if err != nil {
		return "", err
	}
	width := 0 // the largest of an argument
	for _, a := range args {
		if v := reflect.ValueOf(a); v.CanInt() {
			width = max(width, int(min(max(v.Int(), -v.Int()), maxWidth)))
		} else if v.CanUint() {
			width = max(width, int(min(v.Uint(), maxWidth)))
		}
	}
	n := len(format) + quoted*most
	for _, verb := range strings.Split(format, "%")[1:] {
		n += quoted * (most + scalar)
		number, sharp := 0, false
		for _, c := range verb {
			if c >= '0' && c <= '9' {
				number = min(10*number+int(c-'0'), maxWidth)
				continue
			}
			if c == '*' {
				number += width
			}
			n, number = n+number*(1+most/8), 0 // fmt pads each element
			sharp = sharp || c == '#'
			if !strings.ContainsRune("+-# .[]*", c) {
				if slices.ContainsFunc(args, func(a any) bool { return addressed(a, c, sharp) }) {
					return "", b.end(errAddress)
				}
				break
			}
		}
		if n > transient*b.MaxText {
			return "", b.make(n)
		}
	}
	return fmt.Sprintf(format, args...), nil
}

// addressed reports whether fmt might print the address of an argument that measure admits.
func addressed(arg any, verb rune, sharp bool) bool {
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.Map, reflect.Slice:
		return verb == 'p'
	case reflect.Pointer:
		return verb == 'p' || !composite(v.Type().Elem()) && (sharp || !strings.ContainsRune("vsqT", verb))
	}
	return false
}

// composite reports whether fmt prints what a pointer to a type points to, not the address.
func composite(t reflect.Type) bool {
	k := t.Kind()
	return k == reflect.Struct || k == reflect.Map || k == reflect.Slice || k == reflect.Array
}

// pattern compiles a regular expression that matches a text of some bytes within the limits.
func (b *budget) pattern(pattern string, bytes int) (*regexp.Regexp, error) {
	size := expression.Weight(pattern)
	if limit := b.MaxBytes / patternPart; size > limit {
		return nil, b.end(&Error{limitText, "bytes of a pattern with its repetitions written out", limit, size, "--ruler.max-template-bytes, of which it is a quarter"})
	}
	if err := b.take(size * (1 + bytes/bytesPerStep)); err != nil {
		return nil, err
	}
	return regexp.Compile(pattern)
}

// match is regexp.MatchString.
func (b *budget) match(pattern, text string) (bool, error) {
	re, err := b.pattern(pattern, len(text))
	if err != nil {
		return false, err
	}
	return re.MatchString(text), nil
}

// replace is regexp.ReplaceAllString.
func (b *budget) replace(pattern, by, text string) (string, error) {
	re, err := b.pattern(pattern, 2*len(text))
	if err != nil {
		return "", err
	}
	n, groups := len(text), strings.Count(by, "$")
	re.ReplaceAllStringFunc(text, func(found string) string {
		n += len(by) + groups*len(found)
		return ""
	})
	if n > b.MaxText {
		return "", b.make(n)
	}
	return re.ReplaceAllString(text, by), nil
}

// ask answers a query of a template, once for each expression.
func (b *budget) ask(ctx context.Context, expr string, t time.Time) (promql.Vector, error) {
	a := b.answers[expr]
	if a == nil {
		a = &answer{}
		if a.err = b.Queries.Check(expr); a.err == nil {
			a.vector, a.err = b.query(ctx, expr, t)
		}
		b.answers[expr] = a
	}
	a.uses++
	steps := 1
	for _, s := range a.vector {
		steps += stepsPerSample + stepsPerLabel*s.Metric.Len()
	}
	if err := b.take(steps); err != nil {
		return nil, err
	}
	return copied(a.vector), a.err
}

// copied returns a vector whose histograms a template may change.
func copied(v promql.Vector) promql.Vector {
	out := make(promql.Vector, len(v))
	for i, s := range v {
		if s.H != nil {
			s.H = s.H.Copy()
		}
		out[i] = s
	}
	return out
}
