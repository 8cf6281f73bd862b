package promsql

/*
#include "vec/fold.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Fold aggregates series outside of SQL as they are computed, with the bits of the SQL aggregate
// over the same series in the same order. It belongs to one goroutine.
type Fold struct {
	c     *C.prom_fold // nil when closed
	msg   message      // of the last error
	steps int
}

// message is the text of an error of C.
type message [C.PROM_ERROR_BYTES]C.char

func (m *message) error() error { return errors.New(C.GoString(&m[0])) }

// NewFold returns the aggregation of an operator ("sum", "avg", "min", "max", "count", "group",
// "stddev", "stdvar", "absent" or "scalar") into groups of lists of steps values. Its memory counts
// against the budget, which must stay open until Close.
func NewFold(op string, groups, steps int, budget *Budget) (*Fold, error) {
	f := &Fold{steps: steps}
	name := (*C.char)(unsafe.Pointer(unsafe.StringData(op)))
	f.c = C.prom_fold_open(name, C.size_t(len(op)), C.uint32_t(groups), C.uint32_t(steps), C.int64_t(budget.ID()), &f.msg[0])
	if f.c == nil {
		return nil, errors.Join(f.msg.error(), budget.Err())
	}
	return f, nil
}

// Add adds the values of a series, one per step, to its group. The error is a *MemoryError if the
// budget refuses memory, and ErrCancelled after it was cancelled, as those of Join and Result.
func (f *Fold) Add(group uint32, v []float64) error {
	if len(v) != f.steps {
		return fmt.Errorf("aggregate series: %d values for %d steps", len(v), f.steps)
	}
	return f.check(C.prom_fold_add(f.c, C.uint32_t(group), (*C.double)(unsafe.SliceData(v)), &f.msg[0]))
}

// Join adds the series of another Fold of the same operator, groups and steps, which is empty
// afterwards.
func (f *Fold) Join(other *Fold) error { return f.check(C.prom_fold_move(other.c, f.c, &f.msg[0])) }

// Result writes the values of a group to out, which has an element per step, and returns whether
// there is any; if not, out is undefined.
func (f *Fold) Result(group uint32, out []float64) (present bool, err error) {
	if len(out) != f.steps {
		return false, fmt.Errorf("aggregate series: %d results for %d steps", len(out), f.steps)
	}
	var any C.bool
	ok := C.prom_fold_result(f.c, C.uint32_t(group), (*C.double)(unsafe.SliceData(out)), &any, &f.msg[0])
	return bool(any), f.check(ok)
}

func (f *Fold) check(ok C.bool) error { return failure(ok, C.prom_fold_budget(f.c), &f.msg) }

// failure returns the error of a C function, nil if it is ok: that of the budget, or its message.
func failure(ok C.bool, b *C.prom_budget, msg *message) error {
	if ok {
		return nil
	}
	if err := memoryError(C.prom_budget_counts(b)); err != nil {
		return err
	}
	if C.prom_cancelled(b) {
		return ErrCancelled
	}
	return msg.error()
}

// Close frees the states; the Fold must not be used afterwards. Close may be repeated.
func (f *Fold) Close() {
	if f.c != nil {
		C.prom_fold_close(f.c)
		f.c = nil
	}
}
