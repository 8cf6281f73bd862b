package promsql

/*
#include "kernel/kernel.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// ErrCancelled reports that the budget of a Kernel was cancelled.
var ErrCancelled = errors.New("query was cancelled")

// Kernel evaluates a range function outside of SQL, one series after another, with the same bits as
// the SQL aggregate. It belongs to one goroutine.
type Kernel struct {
	c     *C.prom_kernel // nil when closed
	steps int
}

// NewKernel returns the kernel of a function and a spec text, both written as in SQL ("prom_rate",
// "start=0 step=15000 n=10 range=60000"). The texts of errors are SQL's. The spec's budget must
// stay open until Close.
func NewKernel(function, spec string) (*Kernel, error) {
	name, ok := strings.CutPrefix(function, "prom_")
	fn := C.prom_range_find((*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.size_t(len(name)))
	if !ok || fn < 0 {
		return nil, fmt.Errorf("there is no range function %q", function)
	}
	var msg message
	c := C.prom_kernel_open(fn, (*C.char)(unsafe.Pointer(unsafe.StringData(spec))), C.size_t(len(spec)), &msg[0])
	if c == nil {
		return nil, msg.error()
	}
	return &Kernel{c: c, steps: int(c.spec.n)}, nil
}

// Steps is the number of steps of the grid.
func (k *Kernel) Steps() int { return k.steps }

// Facts are properties of a series that the caller knows. They save time and change no result.
type Facts int

const (
	// SameTimes means that the times are those of the previous series.
	SameTimes Facts = C.PROM_SAME_TIMES
	// NoStale means that no value is a stale marker.
	NoStale Facts = C.PROM_NO_STALE
)

// Eval evaluates one series, the values v at the times ts (ms, strictly ascending), into out, which
// has one element per step; steps without a value get the stale marker. It returns whether any step
// has a value. The error is a *MemoryError if the spec's budget refuses scratch memory, and
// ErrCancelled after the budget was cancelled. The slices stay the caller's. Eval allocates no Go
// memory, except for quantiles over zeros of both signs. facts is an or of Facts.
func (k *Kernel) Eval(ts []int64, v []float64, out []float64, facts Facts) (present bool, err error) {
	if len(ts) != len(v) || len(out) != k.steps {
		return false, fmt.Errorf("evaluate series: %d times, %d values and %d results for %d steps", len(ts), len(v), len(out), k.steps)
	}
	if uint64(len(ts)) > math.MaxUint32 {
		return false, fmt.Errorf("a series has more than %d samples", uint32(math.MaxUint32))
	}
	at := (*C.int64_t)(unsafe.SliceData(ts))
	values, results := (*C.double)(unsafe.SliceData(v)), (*C.double)(unsafe.SliceData(out))
	switch C.prom_kernel_eval(k.c, at, values, C.uint32_t(len(ts)), C.int(facts), results) {
	case C.PROM_KERNEL_REFUSED:
		return false, k.refused()
	case C.PROM_KERNEL_CANCELLED:
		return false, ErrCancelled
	case C.PROM_KERNEL_PRESENT:
		return true, nil
	}
	return false, nil
}

// refused returns why the budget refused memory: its limit, the process's, or the machine's memory.
func (k *Kernel) refused() error {
	b := k.c.spec.budget
	if err := memoryError(C.prom_budget_counts(b)); err != nil {
		return err
	}
	return fmt.Errorf("out of memory with %d bytes in use by the query", int64(C.prom_budget_counts(b).used))
}

// Close frees the kernel, which then must not be used. Close may be repeated.
func (k *Kernel) Close() {
	if k.c != nil {
		C.prom_kernel_close(k.c)
		k.c = nil
	}
}
