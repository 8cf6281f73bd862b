package duck

/*
#cgo CFLAGS: -O2 -std=c11 -fexceptions -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
#cgo LDFLAGS: -Wl,--no-export-dynamic
#cgo LDFLAGS: -Wl,--wrap=malloc -Wl,--wrap=realloc -Wl,--wrap=free
#cgo LDFLAGS: -Wl,--wrap=duckdb_je_malloc -Wl,--wrap=duckdb_je_realloc -Wl,--wrap=duckdb_je_free
#include "../../../third_party/duckdb/duckdb.h"
#include "guard.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"

	_ "github.com/promlake/promlake/third_party/duckdb" // the header
)

// This file ends what DuckDB does in one call of a function. DuckDB counts the memory of its
// buffers, and looks for an interrupt between chunks. A call that makes long values of short ones
// (replace, regexp_replace, list_transform) is bounded by neither. A guard refuses the large
// allocations of such a call: DuckDB then fails as it does without memory.
//
// The plan of a short statement may be exponential: a chain of queries each of which mentions the one
// before twice, an alias in the definition of the next one, a CASE of a CASE, SELECT *, * of the same.
// DuckDB parses and binds without looking for an interrupt. What it does there it allocates, in small
// pieces, so a guard bounds the bytes that one planning allocates, and refuses more once it is stopped.
//
// The linker directs all calls of malloc, realloc and free in the program's archives, and those of
// DuckDB's jemalloc, to guard.c, which also has the operators new and delete. Threads that
// entered no guard pass with the cost of a comparison.
//
// The linker also leaves out the table of symbols for libraries that a program loads while it runs.
// DuckDB's 60,000 symbols would take 7 MB of it, and 5 ms of each start.

// Guard is the guard of one database. It is safe for concurrent use.
type Guard struct {
	c       *C.prom_guard
	plan    int64 // bytes
	tasks   C.duckdb_task_state
	workers sync.WaitGroup
}

// NewGuard returns a guard that refuses what goes beyond limit bytes at a time, or beyond plan
// bytes in all while a statement is planned. It must be closed.
func NewGuard(limit, plan int64) (*Guard, error) {
	g := &Guard{c: C.prom_guard_new(C.int64_t(limit)), plan: plan}
	if g.c == nil {
		return nil, errors.New("no memory for a guard")
	}
	return g, nil
}

// Enter makes the guard that of the calling goroutine, which keeps its thread until leave.
func (g *Guard) Enter() (leave func()) {
	runtime.LockOSThread()
	C.prom_guard_enter(g.c)
	return func() {
		C.prom_guard_enter(nil)
		runtime.UnlockOSThread()
	}
}

// Work runs the tasks of an open database on n threads that entered the guard, until Finish.
func (g *Guard) Work(db mapping.Database, n int) {
	if n <= 0 {
		return
	}
	g.tasks = C.duckdb_create_task_state(C.duckdb_database(db.Ptr))
	for range n {
		g.workers.Go(func() {
			defer g.Enter()()
			C.duckdb_execute_tasks_state(g.tasks)
		})
	}
}

// Finish ends the threads of Work. It is called before the database is closed.
func (g *Guard) Finish() {
	if g.tasks == nil {
		return
	}
	C.duckdb_finish_execution(g.tasks)
	g.workers.Wait()
	C.duckdb_destroy_task_state(g.tasks)
	g.tasks = nil
}

// Stop refuses all large allocations from now on.
func (g *Guard) Stop() { C.prom_guard_stop(g.c) }

// Held returns the bytes of large allocations that are not freed.
func (g *Guard) Held() int64 { return int64(C.prom_guard_held(g.c)) }

// Exceeded reports whether an allocation was refused because of the limit.
func (g *Guard) Exceeded() bool { return bool(C.prom_guard_exceeded(g.c)) }

// Crowded reports whether an allocation was refused because the process had no room.
func (g *Guard) Crowded() bool { return bool(C.prom_guard_crowded(g.c)) }

// Room sets how many bytes the guards of the process may allocate together until the next call, as
// its memory is measured every few ms. In between, statements could allocate hundreds of megabytes.
// Only one goroutine calls it.
func Room(bytes int64) { C.prom_guard_room(C.int64_t(bytes)) }

// Plan begins the planning of a statement, which ends before its rows are read: DuckDB's destructors
// must not be refused anything. A nil guard bounds nothing.
func (g *Guard) Plan() (end func()) {
	if g == nil {
		return func() {}
	}
	C.prom_guard_plan(g.c, C.int64_t(g.plan))
	return func() { C.prom_guard_plan(g.c, 0) }
}

// Planned reports whether a planning was refused an allocation because of its limit.
func (g *Guard) Planned() bool { return bool(C.prom_guard_planned(g.c)) }

// Close frees the guard, which no thread may have entered.
func (g *Guard) Close() {
	C.prom_guard_free(g.c)
	g.c = nil
}

// Prepare is mapping.Prepare without a copy of the statement by malloc, whose refusal would end the
// process.
func Prepare(conn mapping.Connection, sql string, out *mapping.PreparedStatement) mapping.State {
	text := append([]byte(sql), 0)
	var stmt C.duckdb_prepared_statement
	state := C.duckdb_prepare(C.duckdb_connection(conn.Ptr), (*C.char)(unsafe.Pointer(&text[0])), &stmt)
	out.Ptr = unsafe.Pointer(stmt)
	return mapping.State(state)
}
