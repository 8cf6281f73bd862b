package promsql

/*
#include "vec/lists.h"
#include "vec/functions.h"
#include "vec/gomath.h"
#include "vec/operators.h"

static inline bool operate(const vec_operator *o, const double *l, const double *r, double *out, uint32_t n) {
	return o->loop(l, 1, r, 1, out, n) != 0;
}

static inline bool apply(const vec_math_fn *f, const double *v, const double *a, const double *b, double *out, uint32_t n) {
	bool any = f->loop(v, 1, a, 1, b, 1, out, n) != 0;
	if (any && f->go != VEC_NO_GO) {
		promGoUnary(f->go, out, n);
	}
	return any;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

func textOf(s string) C.vec_text {
	return C.vec_text{text: (*C.char)(unsafe.Pointer(unsafe.StringData(s))), len: C.size_t(len(s))}
}

func doubles(v []float64) *C.double { return (*C.double)(unsafe.SliceData(v)) }

// Operator is an operator of prom_binary, outside of SQL.
type Operator struct{ c *C.vec_operator }

// OperatorOf returns an operator by its name in prom_binary: that of PromQL; with the prefix "bool", a
// comparison returns 0 or 1; with the prefix "r", it keeps the right value instead of the left. It
// panics if there is none, since plans name operators, and no request does.
func OperatorOf(name string) Operator {
	c := C.vec_operator_find(textOf(name))
	if c == nil {
		panic(fmt.Sprintf("there is no operator %q", name))
	}
	return Operator{c}
}

// Apply writes the results over lists of equal length to out, which has that length and is none of
// them. It reports whether there is any; if not, out is undefined.
func (o Operator) Apply(out, l, r []float64) (any bool) {
	return bool(C.operate(o.c, doubles(l), doubles(r), doubles(out), C.uint32_t(len(out))))
}

// Function is a function of prom_math, outside of SQL.
type Function struct{ c *C.vec_math_fn }

// FunctionOf returns a function of one value by its name in PromQL; "neg" is the unary minus. It
// panics if there is none.
func FunctionOf(name string) Function {
	c := C.vec_math_find(textOf(name))
	if c == nil {
		panic(fmt.Sprintf("there is no function %q", name))
	}
	return Function{c}
}

// Apply writes the results over the values v and at most two lists of parameters to out. All have
// the same length, and out is none of them. It reports whether there is any; if not, out is
// undefined.
func (f Function) Apply(out, v []float64, params ...[]float64) (any bool) {
	a, b := v, v
	if len(params) > 0 {
		a, b = params[0], params[len(params)-1]
	}
	return bool(C.apply(f.c, doubles(v), doubles(a), doubles(b), doubles(out), C.uint32_t(len(out))))
}

// Lists are the lists of the series of a group, in Go's memory, for the aggregates that need all of
// them at once. It belongs to one goroutine.
type Lists struct {
	c      *C.prom_lists // nil when closed
	msg    message       // of the last error
	pinned runtime.Pinner
	steps  int
}

// NewLists returns the lists of some series in upstream's order, at least one, which are equally
// long. bounds are the upper bounds of series that are buckets of a histogram, else nil. Nobody may
// change the lists until Close. What the aggregates need counts against the budget, which must stay
// open until then.
func NewLists(v [][]float64, bounds []float64, budget *Budget) (*Lists, error) {
	l := &Lists{steps: len(v[0])}
	if l.c = C.prom_lists_open(C.uint32_t(len(v)), C.uint32_t(l.steps), C.int64_t(budget.ID()), &l.msg[0]); l.c == nil {
		return nil, errors.Join(l.msg.error(), budget.Err())
	}
	rows := unsafe.Slice(l.c.rows.rows, len(v))
	for i, list := range v {
		l.pinned.Pin(&list[0])
		rows[i] = C.agg_row{i: C.uint32_t(i), n: C.uint32_t(len(list)), v: doubles(list)}
		if bounds != nil {
			rows[i].le = C.double(bounds[i])
		}
	}
	return l, nil
}

// Quantile writes the quantile phi at each step to out. It reports whether there is any. Its errors
// are those of Fold.Add, as those of the other methods.
func (l *Lists) Quantile(phi float64, out []float64) (present bool, err error) {
	var any C.bool
	ok := C.agg_rows_quantile(&l.c.rows, C.double(phi), doubles(out), &any, &l.msg[0])
	return bool(any), failure(ok, l.c.rows.budget, &l.msg)
}

// HistogramQuantile writes the quantile phi of the histogram at each step to out. It reports whether
// there is any, and whether the counts of its buckets had to be made monotonic.
func (l *Lists) HistogramQuantile(phi float64, out []float64) (present, forced bool, err error) {
	var any, changed C.bool
	q := C.double(phi)
	row := C.agg_row{n: 1, v: &q}
	var pinned runtime.Pinner
	defer pinned.Unpin()
	pinned.Pin(&q)
	ok := C.agg_rows_histogram_quantile(&l.c.rows, &row, doubles(out), &any, &changed, &l.msg[0])
	return bool(any), bool(changed), failure(ok, l.c.rows.budget, &l.msg)
}

// Choose chooses k series at each step by an operator ("topk", "bottomk" or "limitk"), and calls use
// with the number and the values of each that is chosen at some step. room returns memory for
// values. It may be called once.
func (l *Lists) Choose(op string, k int64, room func(n int) []float64, use func(i int, v []float64)) error {
	name := textOf(op)
	ok := C.prom_lists_choose(l.c, name.text, name.len, C.uint32_t(min(k, math.MaxUint32)), &l.msg[0])
	if err := failure(ok, l.c.rows.budget, &l.msg); err != nil {
		return err
	}
	all := room(int(l.c.chosen) * l.steps)
	C.agg_choice_write(&l.c.choice, &l.c.rows, l.c.place, l.c.chosen, doubles(all))
	for i, place := range unsafe.Slice(l.c.place, int(l.c.rows.count)) {
		if place != C.AGG_NOWHERE {
			at := int(place) * l.steps
			use(i, all[at:at+l.steps:at+l.steps])
		}
	}
	return nil
}

// Close ends the use of the lists. Close may be repeated.
func (l *Lists) Close() {
	if l.c != nil {
		C.prom_lists_close(l.c)
		l.c = nil
	}
	l.pinned.Unpin()
}
