package memory

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultLimit is three quarters of the memory that the process may have, by its cgroup and its
// machine; 0 if that is not known.
func DefaultLimit() int64 { return machineBytes("/") / 4 * 3 }

// machineBytes reads below root what the kernel says of the memory: the smallest of the machine's
// and of the limits of the cgroup and those above it. 0: it says nothing.
func machineBytes(root string) int64 {
	least := int64(math.MaxInt64)
	if n, ok := memTotal(filepath.Join(root, "proc/meminfo")); ok {
		least = n
	}
	for _, file := range limitFiles(filepath.Join(root, "proc/self/cgroup"), filepath.Join(root, "sys/fs/cgroup")) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // there is no such limit
		}
		// "max" is none, and so is what version 1 says instead, a number beyond any memory.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			least = min(least, n)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// limitFiles lists the files that may hold limits of the process's cgroup, of both versions.
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

func memTotal(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}

// Resident returns the bytes of memory that the process has: of the kernel where it says so, else
// what Go has.
func Resident() int64 {
	text, err := os.ReadFile("/proc/self/statm") // size resident shared …, in pages
	if f := bytes.Fields(text); err == nil && len(f) > 1 {
		if pages, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return goBytes()
}

// goBytes returns the bytes that Go's runtime has from the system: what its soft limit limits.
func goBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// ThisProcess measures and tunes the process that it runs in, for a Budget of limit bytes. Go's
// soft limit is kept at what others, such as DuckDB, leave of nine tenths of limit, unless tune is
// false, which leaves the soft limit alone.
func ThisProcess(limit int64, tune bool) Probe {
	p := Probe{Usage: Resident, Free: debug.FreeOSMemory, Now: time.Now}
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
	p.Tune(Resident())
	return p
}
