// The life of published rows.
#include "table.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct prom_rows_life {
	pthread_mutex_t lock;
	pthread_cond_t left;
	int64_t refs; // the publisher's and those of statements
	int64_t inside;
	bool closed;
	prom_rows *next; // of the listed ones; under list_lock
} life;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static prom_rows *list;
static int64_t last_id;

static void destroy(prom_rows *r) {
	free(r->life);
	free(r->lists);
	free(r->first);
	free(r);
}

prom_rows *prom_rows_new(size_t count, size_t chunks) {
	prom_rows *r = calloc(1, sizeof *r);
	if (r == NULL) {
		return NULL;
	}
	r->count = count;
	r->chunks = chunks;
	r->lists = calloc(count + 1, sizeof *r->lists);
	r->first = calloc(chunks + 1, sizeof *r->first);
	r->life = calloc(1, sizeof *r->life);
	if (r->lists == NULL || r->first == NULL || r->life == NULL) {
		destroy(r);
		return NULL;
	}
	pthread_mutex_init(&r->life->lock, NULL);
	pthread_cond_init(&r->life->left, NULL);
	r->life->refs = 1;
	return r;
}

void prom_rows_list(prom_rows *r) {
	pthread_mutex_lock(&list_lock);
	r->id = ++last_id;
	r->life->next = list;
	list = r;
	pthread_mutex_unlock(&list_lock);
}

void prom_rows_close(prom_rows *r) {
	pthread_mutex_lock(&list_lock);
	for (prom_rows **at = &list; *at != NULL; at = &(*at)->life->next) {
		if (*at == r) {
			*at = r->life->next;
			break;
		}
	}
	pthread_mutex_unlock(&list_lock);
	life *l = r->life;
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	while (l->inside > 0) {
		pthread_cond_wait(&l->left, &l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	prom_rows_release(r);
}

prom_rows *prom_rows_hold(prom_rows *r) {
	pthread_mutex_lock(&r->life->lock);
	r->life->refs++;
	pthread_mutex_unlock(&r->life->lock);
	return r;
}

// Listed rows have their publisher's reference.
prom_rows *prom_rows_acquire(int64_t id) {
	pthread_mutex_lock(&list_lock);
	prom_rows *r = list;
	while (r != NULL && r->id != id) {
		r = r->life->next;
	}
	if (r != NULL) {
		prom_rows_hold(r);
	}
	pthread_mutex_unlock(&list_lock);
	return r;
}

void prom_rows_release(prom_rows *r) {
	life *l = r->life;
	pthread_mutex_lock(&l->lock);
	bool last = --l->refs == 0;
	pthread_mutex_unlock(&l->lock);
	if (last) {
		pthread_mutex_destroy(&l->lock);
		pthread_cond_destroy(&l->left);
		destroy(r);
	}
}

bool prom_rows_enter(prom_rows *r) {
	pthread_mutex_lock(&r->life->lock);
	bool open = !r->life->closed;
	r->life->inside += open;
	pthread_mutex_unlock(&r->life->lock);
	return open;
}

void prom_rows_leave(prom_rows *r) {
	pthread_mutex_lock(&r->life->lock);
	if (--r->life->inside == 0) {
		pthread_cond_signal(&r->life->left);
	}
	pthread_mutex_unlock(&r->life->lock);
}
