// Package proc reads a process's use of the machine from the kernel.
package proc

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Root is where Linux mounts the process file system.
const Root = procfs.DefaultMountPoint

// tick is the unit of processor time in /proc: Linux fixes USER_HZ at 100 for user space.
const tick = 10 * time.Millisecond

// Usage holds the resources that a process has used since its start.
type Usage struct {
	CPU     time.Duration // user and system time of all its threads, a multiple of 10 ms
	RSS     uint64        // bytes: the resident set (VmRSS)
	PeakRSS uint64        // bytes: the largest resident set so far (VmHWM)
}

// Read returns the usage of the process pid according to the process file system at root.
func Read(root string, pid int) (Usage, error) {
	pfs, err := procfs.NewFS(root)
	if err != nil {
		return Usage{}, fmt.Errorf("open process file system: %w", err)
	}
	p, err := pfs.Proc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read stat of process %d: %w", pid, err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("read status of process %d: %w", pid, err)
	}
	return Usage{CPU: time.Duration(stat.UTime+stat.STime) * tick, RSS: status.VmRSS, PeakRSS: status.VmHWM}, nil
}

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
