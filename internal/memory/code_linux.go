package memory

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Code is the part of the program's file that the kernel maps into memory for reading and running:
// machine code and constants. It counts as resident memory of the process.
type Code struct{ parts []part }

// part is a range of addresses in whole pages.
type part struct{ start, bytes uintptr }

// ProgramCode finds the code of this process. It is empty for a program whose addresses are chosen
// when it starts (a position-independent executable).
func ProgramCode() (Code, error) {
	file, err := elf.Open("/proc/self/exe")
	if err != nil {
		return Code{}, fmt.Errorf("read the program's headers: %w", err)
	}
	defer file.Close()
	var c Code
	if file.Type != elf.ET_EXEC {
		return c, nil
	}
	page := uint64(os.Getpagesize())
	for _, p := range file.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W != 0 {
			continue
		}
		start := p.Vaddr / page * page
		end := (p.Vaddr + p.Filesz + page - 1) / page * page
		c.parts = append(c.parts, part{uintptr(start), uintptr(end - start)})
	}
	return c, nil
}

// Divide keeps the kernel from mapping more than finePartBytes of the code at an access to one of
// its pages: by itself it also maps the pages around it, 64 kB or more, and a process whose code is
// spread over the program has several times as much of it resident as it uses. The kernel maps
// nothing beyond a mapping, and a mapping ends at a boundary between areas of other flags, so each
// second part gets a flag that has no other effect: a file's pages are not in core dumps anyway. It
// takes about ten milliseconds of processor time, and each part some 200 bytes in the kernel. Until
// then, a server's code is in larger parts (code_linux_cgo.go).
func (c Code) Divide() error {
	for _, p := range c.parts {
		for at := p.start / finePartBytes * finePartBytes; at < p.start+p.bytes; at += finePartBytes {
			from, to := max(at, p.start), min(at+finePartBytes, p.start+p.bytes)
			flag := unix.MADV_DODUMP
			if at/finePartBytes%2 != 0 {
				flag = unix.MADV_DONTDUMP
			}
			if err := advise(from, to-from, flag); err != nil {
				return err
			}
		}
	}
	return nil
}

// finePartBytes is the size of the parts of Divide. With half of it, another 4 MB of a server's code
// are not resident, for half as many page faults again.
const finePartBytes = 16 << 10

// advise is madvise of a range of addresses.
func advise(start, bytes uintptr, advice int) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, bytes, uintptr(advice)); errno != 0 {
		return fmt.Errorf("madvise: %w", errno)
	}
	return nil
}

// Release takes the code out of the process's resident memory. The kernel keeps it in its page
// cache, and maps again what runs afterwards: the code that only the start needed, and what the
// kernel mapped around it, stay away. It does nothing while a debugger is attached, whose
// breakpoints are changes of the code that would be lost.
func (c Code) Release() error {
	if len(c.parts) == 0 || traced() {
		return nil
	}
	var errs []error
	for _, p := range c.parts {
		errs = append(errs, advise(p.start, p.bytes, unix.MADV_DONTNEED))
	}
	return errors.Join(errs...)
}

// traced reports whether a debugger may be attached to the process.
func traced() bool {
	status, err := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if pid, ok := strings.CutPrefix(string(line), "TracerPid:"); ok {
			return strings.TrimSpace(pid) != "0"
		}
	}
	return err != nil
}
