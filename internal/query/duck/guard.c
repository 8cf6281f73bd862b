#include "guard.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

// Allocations of fewer bytes are neither counted nor refused. What is large in DuckDB takes one call
// of malloc for each 1 to 16 MiB, or for each value.
enum { LARGE = 512 << 10 };

struct prom_guard {
	_Atomic int64_t held; // bytes of large allocations, by the threads that allocate and free
	int64_t limit;
	atomic_bool exceeded;
	atomic_bool crowded; // the process had no room
	atomic_bool stopped;
	atomic_bool planning;
	_Atomic int64_t left; // bytes that the planning may still allocate
	atomic_bool planned;  // a planning had none left
};

// The bytes that all guards may still allocate, and what they have allocated, less what they have
// freed, since that was set.
static _Atomic int64_t room = INT64_MAX / 2;
static _Atomic int64_t admitted;

static _Thread_local prom_guard *current;
static _Thread_local size_t fresh; // bytes of operator new that are not taken from current->left yet

prom_guard *prom_guard_new(int64_t limit) {
	prom_guard *g = calloc(1, sizeof *g);
	if (g) {
		g->limit = limit;
	}
	return g;
}

void prom_guard_free(prom_guard *g) {
	free(g);
}

void prom_guard_stop(prom_guard *g) {
	atomic_store(&g->stopped, true);
}

int64_t prom_guard_held(prom_guard *g) {
	return atomic_load(&g->held);
}

bool prom_guard_exceeded(prom_guard *g) {
	return atomic_load(&g->exceeded);
}

bool prom_guard_crowded(prom_guard *g) {
	return atomic_load(&g->crowded);
}

// What was admitted lately may not be written yet, so that it is missing in what was measured. It
// is subtracted, and an eighth less with each call: half of it after five calls.
void prom_guard_room(int64_t bytes) {
	static int64_t lately;
	lately += atomic_exchange(&admitted, 0) - lately / 8;
	lately = lately > 0 ? lately : 0;
	atomic_store(&room, bytes - lately);
}

void prom_guard_enter(prom_guard *g) {
	current = g;
	fresh = 0;
}

void prom_guard_plan(prom_guard *g, int64_t limit) {
	atomic_store(&g->left, limit);
	atomic_store(&g->planning, limit > 0);
}

bool prom_guard_planned(prom_guard *g) {
	return atomic_load(&g->planned);
}

// The C++ runtime's exceptions of the calling thread, as the Itanium ABI lays them out.
struct exceptions {
	void *caught;
	unsigned thrown;
};
struct exceptions *__cxa_get_globals(void);

// A thread may be refused once for each STEP bytes. In between, DuckDB makes its error of a refusal.
// While it handles an exception or unwinds the stack for one, nothing is refused: a second exception
// could leave DuckDB or a destructor, and end the process.
bool prom_guard_refuses(size_t n) {
	enum { STEP = 256 << 10 };
	prom_guard *g = current;
	if (!g || !atomic_load_explicit(&g->planning, memory_order_relaxed) || (fresh += n) < STEP) {
		return false;
	}
	struct exceptions *e = __cxa_get_globals();
	if (e->caught || e->thrown) {
		return false;
	}
	bool none = atomic_fetch_sub(&g->left, (int64_t)fresh) < (int64_t)fresh;
	fresh = 0;
	if (none) {
		atomic_store(&g->planned, true);
	}
	return none || atomic_load(&g->stopped);
}

// take counts n bytes more; negative ones are given back. It returns what is held then.
static int64_t take(prom_guard *g, int64_t n) {
	atomic_fetch_sub(&room, n);
	atomic_fetch_add(&admitted, n);
	return atomic_fetch_add(&g->held, n) + n;
}

// admit counts n bytes more, unless they are refused.
static bool admit(prom_guard *g, size_t n) {
	if (atomic_load_explicit(&g->stopped, memory_order_relaxed)) {
		return false;
	}
	bool fits = n <= (size_t)g->limit;
	if (fits) {
		fits = take(g, (int64_t)n) <= g->limit;
		if (fits && atomic_load(&room) >= 0) { // of threads that take at once, none gets too much
			return true;
		}
		take(g, -(int64_t)n);
	}
	atomic_store(fits ? &g->crowded : &g->exceeded, true);
	return false;
}

// An allocator is one whose calls the linker directs to this file.
typedef struct {
	void *(*malloc)(size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	size_t (*size)(void *);
} allocator;

// counted returns the bytes that an allocation counts. Allocators round sizes up, so what admit was
// told is corrected by what they gave.
static int64_t counted(const allocator *a, void *p) {
	size_t n = p ? a->size(p) : 0;
	return n >= LARGE ? (int64_t)n : 0;
}

static inline void *allocate(const allocator *a, size_t n) {
	prom_guard *g = current;
	if (!g || n < LARGE) {
		return a->malloc(n);
	}
	if (!admit(g, n)) {
		return NULL;
	}
	void *p = a->malloc(n);
	take(g, counted(a, p) - (int64_t)n);
	return p;
}

static inline void *reallocate(const allocator *a, void *p, size_t n) {
	prom_guard *g = current;
	if (!g) {
		return a->realloc(p, n);
	}
	int64_t before = counted(a, p), more = n >= LARGE && (int64_t)n > before ? (int64_t)n - before : 0;
	if (more && !admit(g, (size_t)more)) {
		return NULL;
	}
	void *q = a->realloc(p, n);
	if (q || n == 0) {
		more += before - counted(a, q);
	}
	take(g, -more);
	return q;
}

static inline void release(const allocator *a, void *p) {
	prom_guard *g = current;
	int64_t n = g ? counted(a, p) : 0;
	if (n) {
		take(g, -n);
	}
	a->free(p);
}

// The linker makes these of all calls of malloc, realloc and free in the program's archives.
void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);

static const allocator libc = {__real_malloc, __real_realloc, __real_free, malloc_usable_size};

void *__wrap_malloc(size_t n) {
	return allocate(&libc, n);
}

void *__wrap_realloc(void *p, size_t n) {
	return reallocate(&libc, p, n);
}

void __wrap_free(void *p) {
	release(&libc, p);
}

// DuckDB has a jemalloc of its own on some platforms; elsewhere nobody calls these.
__attribute__((weak)) void *__real_duckdb_je_malloc(size_t n);
__attribute__((weak)) void *__real_duckdb_je_realloc(void *p, size_t n);
__attribute__((weak)) void __real_duckdb_je_free(void *p);
__attribute__((weak)) size_t duckdb_je_malloc_usable_size(void *p);

static const allocator jemalloc = {__real_duckdb_je_malloc, __real_duckdb_je_realloc, __real_duckdb_je_free, duckdb_je_malloc_usable_size};

void *__wrap_duckdb_je_malloc(size_t n) {
	return allocate(&jemalloc, n);
}

void *__wrap_duckdb_je_realloc(void *p, size_t n) {
	return reallocate(&jemalloc, p, n);
}

void __wrap_duckdb_je_free(void *p) {
	release(&jemalloc, p);
}
