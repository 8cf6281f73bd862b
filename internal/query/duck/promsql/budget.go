package promsql

/*
#include "kernel/budget.h"
*/
import "C"

import (
	"fmt"
	"sync"

	"github.com/promlake/promlake/internal/base/memory"
)

// MemoryError reports that the memory of a query's functions exceeded its budget.
type MemoryError struct {
	Limit  int64 // bytes
	Needed int64 // bytes in use, including the refused ones
}

// Error implements error.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("query memory limit of %d bytes exceeded: at least %d bytes needed", e.Limit, e.Needed)
}

// Budget counts the memory of one query's functions, limits it, and cancels them. The spec key
// budget=<ID> names it. It is safe for concurrent use.
type Budget struct {
	id int64

	mu   sync.Mutex
	c    *C.prom_budget // nil when closed
	last C.prom_counts  // of a closed one
}

// LimitProcess limits the memory of all budgets of the process together, and of functions without
// a budget, to limitBytes bytes; 0 is no limit. What is allocated already counts.
func LimitProcess(limitBytes int64) { C.prom_process_set_limit(C.int64_t(limitBytes)) }

// NewBudget opens a budget of limitBytes bytes; 0 is no limit. The caller closes it.
func NewBudget(limitBytes int64) *Budget {
	var id C.int64_t
	c := C.prom_budget_open(C.int64_t(limitBytes), &id)
	if c == nil {
		panic("promsql: out of memory") // as Go does when it finds none
	}
	return &Budget{id: int64(id), c: c}
}

// ID identifies the budget in specs. It is never 0, and unique in the process.
func (b *Budget) ID() int { return int(b.id) }

// Used returns the bytes that are allocated now, 0 once the budget is closed.
func (b *Budget) Used() int64 { return int64(b.counts().used) }

// Peak returns the most bytes that were allocated at once.
func (b *Budget) Peak() int64 { return int64(b.counts().peak) }

// Err returns a *MemoryError if the limit refused memory, a *memory.Error if that of the process
// did, and nil otherwise. It outlives Close.
func (b *Budget) Err() error { return memoryError(b.counts()) }

// ForcedMonotonicity reports whether prom_histogram_quantile changed counts by more than the
// rounding of floats explains. Upstream's engine then adds an annotation. It outlives Close.
func (b *Budget) ForcedMonotonicity() bool { return bool(b.counts().forced) }

// Cancel makes every function that runs under the budget fail its statement soon.
func (b *Budget) Cancel() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		C.prom_budget_cancel(b.c)
	}
}

// Reclaim frees what failed statements left allocated and returns its bytes: DuckDB leaks the
// states of an aggregate if finalize fails. No statement under the budget may run or have an open
// result.
func (b *Budget) Reclaim() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		return 0
	}
	return int64(C.prom_budget_reclaim(b.c))
}

// Close ends the budget: specs can no longer name it. It returns an error if memory is still
// allocated; that memory is freed when DuckDB drops the statement. Close may be repeated.
func (b *Budget) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		return nil
	}
	b.last = C.prom_budget_counts(b.c)
	left := C.prom_budget_close(b.c)
	b.c, b.last.used = nil, 0
	if left != 0 {
		return fmt.Errorf("close query memory budget: %d bytes are still in use", int64(left))
	}
	return nil
}

// counts returns what the budget has noted, also of a closed one.
func (b *Budget) counts() C.prom_counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		return b.last
	}
	return C.prom_budget_counts(b.c)
}

// memoryError returns the error of the limit that refused memory, or nil.
func memoryError(c C.prom_counts) error {
	switch {
	case c.needed > 0:
		return &MemoryError{Limit: int64(c.limit), Needed: int64(c.needed)}
	case c.process_needed > 0:
		return &memory.Error{Limit: int64(C.prom_process_limit()), Needed: int64(c.process_needed), Ended: true}
	}
	return nil
}
