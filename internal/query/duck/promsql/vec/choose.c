// The choice of topk, bottomk and limitk. Which of several equal values wins depends on the heap of
// upstream's engine, Go's container/heap. This code repeats its steps, series by series in the
// order of ordinals.
#include "choose.h"

#define BLOCK 16 // steps whose series are looked at together: most series do not get into any heap of a block

// Whether a precedes b in the heap. The first element is replaced next; NaN precedes numbers.
VEC_INLINE bool before(agg_ranking how, double a, double b) { return a != a || (how == AGG_TOP ? a < b : a > b); }

VEC_INLINE void swap(agg_candidate *a, agg_candidate *b) {
	agg_candidate c = *a;
	*a = *b;
	*b = c;
}

// heap.Push
static void push(agg_ranking how, agg_candidate *heap, uint32_t *count, agg_candidate c) {
	uint32_t at = (*count)++;
	heap[at] = c;
	for (uint32_t up; at > 0 && before(how, heap[at].v, heap[up = (at - 1) / 2].v); at = up) {
		swap(&heap[up], &heap[at]);
	}
}

// heap.Fix of the first
static void fix(agg_ranking how, agg_candidate *heap, uint32_t count) {
	for (uint32_t at = 0, down; (down = 2 * at + 1) < count; at = down) {
		down += down + 1 < count && before(how, heap[down + 1].v, heap[down].v);
		if (!before(how, heap[down].v, heap[at].v)) {
			return;
		}
		swap(&heap[at], &heap[down]);
	}
}

static void offer(agg_ranking how, agg_candidate *heap, uint32_t *count, uint32_t k, agg_candidate c) {
	if (*count < k) {
		push(how, heap, count, c);
		return;
	}
	double first = heap[0].v;
	if ((how == AGG_TOP ? first < c.v : first > c.v) || (first != first && c.v == c.v)) {
		heap[0] = c;
		fix(how, heap, *count);
	}
}

// Whether any of n values might enter its heap. first holds the first element of a full heap, and
// NaN while the heap has room.
VEC_INLINE bool any_enters(agg_ranking how, const double *restrict first, const double *restrict v, uint32_t n) {
	uint64_t any = 0;
	for (uint32_t j = 0; j < n; j++) {
		any |= vec_mask((how == AGG_TOP ? first[j] < v[j] : first[j] > v[j]) | (first[j] != first[j]));
	}
	return any != 0;
}

VEC_INLINE void rank_row(agg_ranking how, const agg_row *row, uint32_t number, uint32_t steps, double *first, agg_choice *to) {
	for (uint32_t from = 0; from < steps; from += BLOCK) {
		uint32_t n = steps - from < BLOCK ? steps - from : BLOCK;
		if (row->n == steps && !any_enters(how, first + from, row->v + from, n)) {
			continue;
		}
		for (uint32_t k = from; k < from + n; k++) {
			double v = agg_row_at(row, k);
			if (prom_is_absent(v)) {
				continue;
			}
			agg_candidate *heap = to->all + (size_t)k * to->room;
			offer(how, heap, &to->count[k], to->room, (agg_candidate){v, number});
			first[k] = to->count[k] < to->room ? NAN : heap[0].v;
		}
	}
}

static bool rank_rows(agg_ranking how, const agg_rows *rows, agg_choice *to, char err[PROM_ERROR_BYTES]) {
	double *first = agg_rows_scratch(rows, rows->n, sizeof *first, err);
	if (first == NULL) {
		return false;
	}
	for (uint32_t k = 0; k < rows->n; k++) {
		first[k] = NAN;
	}
	for (uint32_t r = 0; r < rows->count; r++) {
		if (how == AGG_TOP) {
			rank_row(AGG_TOP, &rows->rows[r], r, rows->n, first, to);
		} else {
			rank_row(AGG_BOTTOM, &rows->rows[r], r, rows->n, first, to);
		}
	}
	prom_free(first);
	return true;
}

// The first series that have a value.
static void take_rows(const agg_rows *rows, agg_choice *to) {
	for (uint32_t r = 0; r < rows->count; r++) {
		for (uint32_t k = 0; k < rows->n; k++) {
			double v = agg_row_at(&rows->rows[r], k);
			if (!prom_is_absent(v) && to->count[k] < to->room) {
				to->all[(size_t)k * to->room + to->count[k]++] = (agg_candidate){v, r};
			}
		}
	}
}

bool agg_choose_rows(agg_ranking how, const agg_rows *rows, uint32_t k, agg_choice *to, char err[PROM_ERROR_BYTES]) {
	*to = (agg_choice){.room = k < rows->count ? k : rows->count};
	to->count = agg_rows_scratch(rows, rows->n, sizeof *to->count, err);
	to->all = to->count == NULL ? NULL : agg_rows_scratch(rows, (size_t)rows->n * to->room, sizeof *to->all, err);
	bool ok = to->all != NULL;
	if (ok) {
		memset(to->count, 0, rows->n * sizeof *to->count);
	}
	// If all series fit, the order in the heap does not matter.
	if (ok && (how == AGG_LIMIT || to->room == rows->count)) {
		take_rows(rows, to);
	} else {
		ok = ok && rank_rows(how, rows, to, err);
	}
	if (!ok) {
		agg_choice_free(to);
	}
	return ok;
}

void agg_choice_free(agg_choice *c) {
	prom_free(c->all);
	prom_free(c->count);
	*c = (agg_choice){0};
}

uint32_t agg_choice_places(const agg_choice *c, const agg_rows *rows, uint32_t *place) {
	memset(place, 0xff, rows->count * sizeof *place);
	for (uint32_t k = 0; k < rows->n; k++) {
		for (uint32_t j = 0; j < c->count[k]; j++) {
			place[c->all[(size_t)k * c->room + j].row] = 0;
		}
	}
	uint32_t chosen = 0;
	for (uint32_t r = 0; r < rows->count; r++) {
		if (place[r] != AGG_NOWHERE) {
			place[r] = chosen++;
		}
	}
	return chosen;
}

void agg_choice_write(const agg_choice *c, const agg_rows *rows, const uint32_t *place, uint32_t chosen, double *to) {
	for (size_t j = 0; j < (size_t)chosen * rows->n; j++) {
		to[j] = prom_absent_value();
	}
	for (uint32_t k = 0; k < rows->n; k++) {
		for (uint32_t j = 0; j < c->count[k]; j++) {
			agg_candidate one = c->all[(size_t)k * c->room + j];
			to[(size_t)place[one.row] * rows->n + k] = one.v;
		}
	}
}

// Counts a row at the steps that have fewer than k values so far. Returns whether there is such a
// step.
static bool counts(const agg_row *row, uint32_t steps, uint32_t k, uint32_t *count) {
	bool any = false;
	for (uint32_t j = 0; j < steps; j++) {
		bool chosen = !prom_is_absent(agg_row_at(row, j)) && count[j] < k;
		count[j] += chosen;
		any |= chosen;
	}
	return any;
}

bool agg_limit_prune(agg_rows *rows, uint32_t k, char err[PROM_ERROR_BYTES]) {
	uint32_t *count = agg_rows_scratch(rows, rows->n, sizeof *count, err), kept = 0;
	if (count == NULL) {
		return false;
	}
	memset(count, 0, rows->n * sizeof *count);
	agg_rows_by_ordinal(rows);
	for (uint32_t r = 0; r < rows->count; r++) {
		if (counts(&rows->rows[r], rows->n, k, count)) {
			rows->rows[kept++] = rows->rows[r];
		} else {
			prom_free(rows->rows[r].v);
		}
	}
	rows->count = kept;
	prom_free(count);
	return true;
}
