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

// Release takes the code out of the process's resident memory. The kernel keeps it in its page
// cache, and maps again what runs afterwards, 64 kB at a time: the code that only the start needed,
// and what the kernel mapped around it, stay away. It does nothing while a debugger is attached,
// whose breakpoints are changes of the code that would be lost.
func (c Code) Release() error {
	if len(c.parts) == 0 || traced() {
		return nil
	}
	var errs []error
	for _, p := range c.parts {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, p.start, p.bytes, unix.MADV_DONTNEED); errno != 0 {
			errs = append(errs, fmt.Errorf("madvise: %w", errno))
		}
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
