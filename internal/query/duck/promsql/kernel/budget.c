// Budgets and the memory counted against them.
#include "budget.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

// The header before memory that prom_alloc returns. Its size keeps that memory aligned.
typedef struct header {
	prom_budget *budget;
	size_t bytes; // header included
	LIST_ENTRY(header) others; // of the budget
} header;

_Static_assert(sizeof(header) % _Alignof(max_align_t) == 0, "memory after a header is aligned");

struct prom_budget {
	_Atomic int64_t refs; // the opener's, those of specs, and one of every allocation
	_Atomic int64_t used, peak, needed, process_needed;
	atomic_bool cancelled, forced;
	int64_t limit; // 0: none
	int64_t id;
	LIST_ENTRY(prom_budget) others; // that are open; under open_lock

	pthread_mutex_t lock; // of the list of allocations
	LIST_HEAD(, header) allocations;
};

static prom_budget unlimited = {.refs = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic int64_t process_used, process_limit;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, prom_budget) open_budgets;
static int64_t last_id;

prom_budget *prom_budget_default(void) { return &unlimited; }

prom_budget *prom_budget_open(int64_t limit, int64_t *id) {
	prom_budget *b = calloc(1, sizeof *b);
	if (b == NULL) {
		return NULL;
	}
	b->limit = limit;
	pthread_mutex_init(&b->lock, NULL);
	atomic_init(&b->refs, 1);
	pthread_mutex_lock(&open_lock);
	b->id = *id = ++last_id;
	LIST_INSERT_HEAD(&open_budgets, b, others);
	pthread_mutex_unlock(&open_lock);
	return b;
}

int64_t prom_budget_close(prom_budget *b) {
	pthread_mutex_lock(&open_lock);
	LIST_REMOVE(b, others);
	pthread_mutex_unlock(&open_lock);
	int64_t used = b->used;
	prom_budget_release(b);
	return used;
}

prom_budget *prom_budget_acquire(int64_t id) {
	pthread_mutex_lock(&open_lock);
	prom_budget *b = id == 0 ? &unlimited : LIST_FIRST(&open_budgets);
	while (b != NULL && b->id != id) {
		b = LIST_NEXT(b, others);
	}
	if (b != NULL) {
		b->refs++;
	}
	pthread_mutex_unlock(&open_lock);
	return b;
}

// An open budget holds its opener's reference, so the last reference goes only after the budget was
// closed and can no longer be acquired. The default budget is never closed.
void prom_budget_release(prom_budget *b) {
	if (--b->refs == 0) {
		pthread_mutex_destroy(&b->lock);
		free(b);
	}
}

static void link_up(header *h) {
	pthread_mutex_lock(&h->budget->lock);
	LIST_INSERT_HEAD(&h->budget->allocations, h, others);
	pthread_mutex_unlock(&h->budget->lock);
}

static void unlink_from(header *h) {
	pthread_mutex_lock(&h->budget->lock);
	LIST_REMOVE(h, others);
	pthread_mutex_unlock(&h->budget->lock);
}

int64_t prom_budget_reclaim(prom_budget *b) {
	int64_t used = b->used;
	while (!LIST_EMPTY(&b->allocations)) {
		prom_free(LIST_FIRST(&b->allocations) + 1);
	}
	return used;
}

void prom_budget_cancel(prom_budget *b) { b->cancelled = true; }

bool prom_cancelled(const prom_budget *b) { return atomic_load_explicit(&b->cancelled, memory_order_relaxed); }

void prom_budget_set_forced(prom_budget *b) { b->forced = true; }

prom_counts prom_budget_counts(const prom_budget *b) {
	return (prom_counts){.limit = b->limit, .used = b->used, .peak = b->peak, .needed = b->needed, .process_needed = b->process_needed, .forced = b->forced};
}

void prom_process_set_limit(int64_t limit) { process_limit = limit; }

int64_t prom_process_limit(void) { return process_limit; }

// Adds n bytes to a sum unless a limit refuses them, and records the sum that was needed first.
static bool add(_Atomic int64_t *sum, size_t n, int64_t limit, _Atomic int64_t *needed, int64_t *now) {
	*now = *sum += (int64_t)n;
	if (limit <= 0 || *now <= limit) {
		return true;
	}
	int64_t none = 0;
	atomic_compare_exchange_strong(needed, &none, *now);
	*sum -= (int64_t)n;
	return false;
}

// Counts n more bytes, or refuses them.
static bool charge(prom_budget *b, size_t n) {
	int64_t used, all;
	if (!add(&b->used, n, b->limit, &b->needed, &used)) {
		return false;
	}
	if (!add(&process_used, n, process_limit, &b->process_needed, &all)) {
		b->used -= (int64_t)n;
		return false;
	}
	int64_t peak = b->peak;
	while (used > peak && !atomic_compare_exchange_weak(&b->peak, &peak, used)) {
	}
	return true;
}

static void discharge(prom_budget *b, size_t n) {
	b->used -= (int64_t)n;
	process_used -= (int64_t)n;
}

void *prom_alloc(prom_budget *b, size_t n) {
	if (n > PTRDIFF_MAX - sizeof(header)) {
		return NULL;
	}
	n += sizeof(header);
	if (!charge(b, n)) {
		return NULL;
	}
	header *h = malloc(n);
	if (h == NULL) {
		discharge(b, n);
		return NULL;
	}
	b->refs++;
	h->budget = b;
	h->bytes = n;
	link_up(h);
	return h + 1;
}

void *prom_realloc(prom_budget *b, void *p, size_t n) {
	if (p == NULL) {
		return prom_alloc(b, n);
	}
	header *h = (header *)p - 1;
	size_t old = h->bytes;
	b = h->budget;
	if (n > PTRDIFF_MAX - sizeof(header)) {
		return NULL;
	}
	n += sizeof(header);
	if (n > old && !charge(b, n - old)) {
		return NULL;
	}
	unlink_from(h);
	header *moved = realloc(h, n);
	link_up(moved == NULL ? h : moved);
	if (moved == NULL) {
		if (n > old) {
			discharge(b, n - old);
		}
		return NULL;
	}
	if (n < old) {
		discharge(b, old - n);
	}
	moved->bytes = n;
	return moved + 1;
}

void prom_free(void *p) {
	if (p == NULL) {
		return;
	}
	header *h = (header *)p - 1;
	prom_budget *b = h->budget;
	unlink_from(h);
	discharge(b, h->bytes);
	free(h);
	prom_budget_release(b);
}

bool prom_memory_error(const prom_budget *b, char err[PROM_ERROR_BYTES]) {
	int64_t needed = b->needed, all = b->process_needed;
	if (needed > 0) {
		snprintf(err, PROM_ERROR_BYTES, "query memory limit of %" PRId64 " bytes exceeded: at least %" PRId64 " bytes needed", b->limit, needed);
	} else if (all > 0) {
		snprintf(err, PROM_ERROR_BYTES,
			"the process is at its memory limit of %" PRId64 " bytes: the functions of all queries need at least %" PRId64 "; request less, retry later, or raise --memory-limit",
			prom_process_limit(), all);
	} else {
		snprintf(err, PROM_ERROR_BYTES, "out of memory with %" PRId64 " bytes in use by the query", (int64_t)b->used);
	}
	return false;
}

bool prom_cancel_error(char err[PROM_ERROR_BYTES]) {
	snprintf(err, PROM_ERROR_BYTES, "query was cancelled");
	return false;
}

void *prom_scratch_take(prom_scratch *s, size_t n) {
	if (n <= s->bytes) {
		return s->mem;
	}
	prom_free(s->mem);
	s->bytes = 0;
	s->mem = prom_alloc(s->budget, n + n / 2);
	if (s->mem != NULL) {
		s->bytes = n + n / 2;
	}
	return s->mem;
}

void prom_scratch_free(prom_scratch *s) {
	prom_free(s->mem);
	s->mem = NULL;
	s->bytes = 0;
}
