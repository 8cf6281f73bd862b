//go:build linux && cgo

package memory

/*
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

// Linux maps the whole of a large folio of the page cache at the first access to one of its pages
// (from 6.18 on). Large folios are up to 2 MB, so code that is spread over the program makes nearly
// all of it resident. A mapping ends at a boundary between areas of other flags, so each second
// part of the program's file gets a flag that has no other effect: a file's pages are not in core
// dumps anyway.
enum { partBytes = 512 << 10 };

static void divideSegment(uintptr_t from, uintptr_t to) {
	for (uintptr_t at = (from / partBytes + 1) * partBytes; at + partBytes <= to; at += 2 * partBytes)
		madvise((void *)at, partBytes, MADV_DONTDUMP);
}

// divideCode runs before Go's runtime and before the constructors of C++.
__attribute__((constructor(101))) static void divideCode(int argc, char **argv) {
	if (argc < 2 || strcmp(argv[1], "serve") != 0)
		return; // what ends soon gains nothing
	const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	unsigned long n = getauxval(AT_PHNUM);
	uintptr_t base = 0;
	for (unsigned long i = 0; i < n; i++)
		if (headers[i].p_type == PT_PHDR)
			base = (uintptr_t)headers - headers[i].p_vaddr;
	for (unsigned long i = 0; i < n; i++)
		if (headers[i].p_type == PT_LOAD && !(headers[i].p_flags & PF_W))
			divideSegment(base + headers[i].p_vaddr, base + headers[i].p_vaddr + headers[i].p_filesz);
}
*/
import "C"
