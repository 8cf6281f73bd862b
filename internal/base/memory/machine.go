package memory

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
)

// DefaultLimit returns three quarters of the memory that the process's cgroup and its machine
// allow, or 0 if that is unknown.
func DefaultLimit() int64 { return machineBytes("/") / 4 * 3 }

// machineBytes reads the memory from the kernel's files below root: the minimum of the machine's
// memory and the limits of the cgroup and its ancestors. It returns 0 if there is no information.
func machineBytes(root string) int64 {
	least := int64(math.MaxInt64)
	if fs, err := procfs.NewFS(filepath.Join(root, "proc")); err == nil {
		if m, err := fs.Meminfo(); err == nil && m.MemTotalBytes != nil {
			least = int64(*m.MemTotalBytes)
		}
	}
	for _, file := range limitFiles(filepath.Join(root, "proc/self/cgroup"), filepath.Join(root, "sys/fs/cgroup")) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // there is no such limit
		}
		// "max" means no limit. Version 1 has a number larger than any memory instead.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			least = min(least, n)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// limitFiles returns the files that may hold limits of the process's cgroup, for both cgroup
// versions.
func limitFiles(cgroup, mount string) []string {
	files := []string{filepath.Join(mount, "memory.max"), filepath.Join(mount, "memory/memory.limit_in_bytes")}
	text, err := os.ReadFile(cgroup)
	if err != nil {
		return files
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy:controllers:path
		if len(fields) != 3 {
			continue
		}
		for path := filepath.Clean("/" + fields[2]); path != "/"; path = filepath.Dir(path) {
			switch {
			case fields[1] == "":
				files = append(files, filepath.Join(mount, path, "memory.max"))
			case strings.Contains(fields[1], "memory"):
				files = append(files, filepath.Join(mount, "memory", path, "memory.limit_in_bytes"))
			}
		}
	}
	return files
}

// resident returns the resident memory of the process in bytes, without the pages that it has mapped
// from files, such as its code: the kernel drops these when it needs memory. It asks the kernel if
// possible, else it is the memory of Go's runtime.
func resident() int64 {
	var text [256]byte
	n, err := statm().ReadAt(text[:], 0) // a nil file returns an error
	if f := bytes.Fields(text[:n]); (err == nil || err == io.EOF) && len(f) > 2 {
		pages, err := strconv.ParseInt(string(f[1]), 10, 64)
		mapped, merr := strconv.ParseInt(string(f[2]), 10, 64)
		if err == nil && merr == nil {
			return (pages - mapped) * int64(os.Getpagesize())
		}
	}
	return goBytes()
}

// statm is the kernel's file of the process's memory: size resident shared …, in pages. It stays
// open: to open it takes several times as long as to read it. nil: there is none.
var statm = sync.OnceValue(func() *os.File {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return nil
	}
	return f
})

// goBytes returns the bytes that Go's runtime has from the system, which its soft limit limits.
func goBytes() int64 {
	s := measured("/memory/classes/total:bytes", "/memory/classes/heap/released:bytes")
	return int64(s[0] - s[1])
}

// ThisProcess returns a Probe that measures and tunes the current process for a Budget of limit
// bytes. With tune, it sets Go's soft limit to nine tenths of limit minus the memory that other
// code, such as DuckDB, uses.
func ThisProcess(limit int64, tune bool) Probe {
	p := Probe{Usage: resident, Free: debug.FreeOSMemory, Now: time.Now}
	if !tune || limit <= 0 {
		return p
	}
	var set atomic.Int64
	p.Tune = func(used int64) {
		own := goBytes()
		want := max(limit/8, limit/10*9-max(0, used-own))
		if d := want - set.Load(); d > limit/64 || d < -limit/64 {
			set.Store(want)
			debug.SetMemoryLimit(want)
		}
	}
	p.Tune(resident())
	return p
}
