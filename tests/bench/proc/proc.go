// Package proc reads a process's use of the machine from the kernel.
package proc

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Usage holds the resources that a process has used since its start.
type Usage struct {
	CPU     time.Duration // user and system time of all its threads, also of those that have ended
	RSS     uint64        // bytes: the resident set (VmRSS)
	PeakRSS uint64        // bytes: the largest resident set so far (VmHWM)
}

// Read returns the usage of the process pid.
func Read(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("read status of process %d: %w", pid, err)
	}
	var ran unix.Timespec
	if err := unix.ClockGettime(clock(pid), &ran); err != nil {
		return Usage{}, fmt.Errorf("read processor time of process %d: %w", pid, err)
	}
	return Usage{CPU: time.Duration(ran.Nano()), RSS: status.VmRSS, PeakRSS: status.VmHWM}, nil
}

// clock is Linux' clock of the processor time of a process, in nanoseconds: the kernel's files have
// it in hundredths of a second.
// Source: clock_getcpuclockid(3), CPUCLOCK_SCHED in the kernel's include/linux/posix-timers_types.h.
func clock(pid int) int32 { return int32(^pid)<<3 | 2 }

// Self returns the processor time (user and system) that this process has used.
func Self() (time.Duration, error) {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0, fmt.Errorf("get own resource usage: %w", err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), nil
}

// DiskUsage returns the bytes that the files under dir occupy on their device (whole blocks; holes
// count nothing).
func DiskUsage(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("no block count of %s", path)
		}
		sum += st.Blocks * 512 // the unit of st_blocks, whatever the device's
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("add up files under %s: %w", dir, err)
	}
	return sum, nil
}
