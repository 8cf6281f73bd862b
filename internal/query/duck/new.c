// The program's operators new and delete, which C++ lets a program replace. They are C++'s own over
// malloc, so that a guard sees the memory of texts and vectors, also of those that a shared library
// of C++ makes. C has no way to throw: -fexceptions lets C++'s exception pass.

#include <stddef.h>
#include <stdlib.h>

#include "guard.h"

void _ZSt17__throw_bad_allocv(void); // std::__throw_bad_alloc()

// operator new(size_t)
void *_Znwm(size_t n) {
	void *p = prom_guard_refuses(n) ? NULL : malloc(n ? n : 1);
	if (!p) {
		_ZSt17__throw_bad_allocv();
	}
	return p;
}

// operator new[](size_t)
void *_Znam(size_t n) {
	return _Znwm(n);
}

// operator delete(void *)
void _ZdlPv(void *p) {
	free(p);
}

// operator delete(void *, size_t)
void _ZdlPvm(void *p, size_t n) {
	(void)n;
	free(p);
}

// operator delete[](void *)
void _ZdaPv(void *p) {
	free(p);
}

// operator delete[](void *, size_t)
void _ZdaPvm(void *p, size_t n) {
	(void)n;
	free(p);
}
