#include "scratch.h"

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
