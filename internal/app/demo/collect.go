package demo

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

func collectCPU(fs procfs.FS, e emit) error {
	s, err := fs.Stat()
	if err != nil {
		return fmt.Errorf("read cpu times: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(s.CPU)) {
		cpu, c := strconv.FormatInt(id, 10), s.CPU[id]
		for _, m := range []struct {
			mode string
			v    float64
		}{
			{"idle", c.Idle}, {"iowait", c.Iowait}, {"irq", c.IRQ}, {"nice", c.Nice},
			{"softirq", c.SoftIRQ}, {"steal", c.Steal}, {"system", c.System}, {"user", c.User},
		} {
			e.counter("node_cpu_seconds_total", "Seconds the CPUs spent in each mode.", m.v, "cpu", cpu, "mode", m.mode)
		}
		const guests, help = "node_cpu_guest_seconds_total", "Seconds the CPUs spent in guests (VMs) for each mode."
		e.counter(guests, help, c.GuestNice, "cpu", cpu, "mode", "nice")
		e.counter(guests, help, c.Guest, "cpu", cpu, "mode", "user")
	}
	e.gauge("node_boot_time_seconds", "Node boot time, in unixtime.", float64(s.BootTime))
	e.counter("node_context_switches_total", "Total number of context switches.", float64(s.ContextSwitches))
	e.counter("node_forks_total", "Total number of forks.", float64(s.ProcessCreated))
	e.counter("node_intr_total", "Total number of interrupts serviced.", float64(s.IRQTotal))
	e.gauge("node_procs_running", "Number of processes in runnable state.", float64(s.ProcessesRunning))
	e.gauge("node_procs_blocked", "Number of processes blocked waiting for I/O to complete.", float64(s.ProcessesBlocked))
	return nil
}

func collectLoad(fs procfs.FS, e emit) error {
	l, err := fs.LoadAvg()
	if err != nil {
		return fmt.Errorf("read load average: %w", err)
	}
	e.gauge("node_load1", "1m load average.", l.Load1)
	e.gauge("node_load5", "5m load average.", l.Load5)
	e.gauge("node_load15", "15m load average.", l.Load15)
	return nil
}

// collectMemory reports all fields of meminfo with node_exporter's names; those in bytes end with
// _bytes.
func collectMemory(procPath string, e emit) error {
	text, err := os.ReadFile(filepath.Join(procPath, "meminfo"))
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":") // such as Active(anon): 4000000 kB
		amount, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		v, err := strconv.ParseFloat(amount, 64)
		if err != nil {
			return fmt.Errorf("read memory: field %s: %w", name, err)
		}
		name = strings.NewReplacer("(", "_", ")", "").Replace(name)
		if unit == "kB" {
			name, v = name+"_bytes", v*1024
		}
		e.gauge("node_memory_"+name, "Memory information field "+name+".", v)
	}
	return nil
}

// pressures are the totals of resources with the names and help texts of node_exporter. stalled is
// "" where no total is reported.
var pressures = []struct{ resource, waiting, stalled string }{
	{"cpu", "Total time in seconds that processes have waited for CPU time.", ""},
	{"io", "Total time in seconds that processes have waited due to IO congestion.", "Total time in seconds no process could make progress due to IO congestion."},
	{"memory", "Total time in seconds that processes have waited for memory.", "Total time in seconds no process could make progress due to memory congestion."},
}

// collectPressure reports /proc/pressure (Linux 4.20), whose totals are in microseconds.
func collectPressure(fs procfs.FS, e emit) error {
	for _, r := range pressures {
		s, err := fs.PSIStatsForResource(r.resource)
		if err != nil {
			return fmt.Errorf("read pressure of %s: %w", r.resource, err)
		}
		total := func(name, help string, line *procfs.PSILine) {
			if line != nil && help != "" {
				e.counter("node_pressure_"+r.resource+"_"+name+"_seconds_total", help, float64(line.Total)/1e6)
			}
		}
		total("waiting", r.waiting, s.Some)
		total("stalled", r.stalled, s.Full)
	}
	return nil
}

// ignoredDisks matches memory disks, loop devices, and partitions of disks that are reported as a
// whole; node_exporter ignores the same.
var ignoredDisks = regexp.MustCompile(`^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`)

// sectorBytes is the unit of /proc/diskstats, whatever the device's own sector size is.
const sectorBytes = 512

func collectDisks(fs blockdevice.FS, e emit) error {
	disks, err := fs.ProcDiskstats()
	if err != nil {
		return fmt.Errorf("read disk statistics: %w", err)
	}
	for _, d := range disks {
		if ignoredDisks.MatchString(d.DeviceName) {
			continue
		}
		s := d.IOStats
		e.counter("node_disk_reads_completed_total", "The total number of reads completed successfully.", float64(s.ReadIOs), "device", d.DeviceName)
		e.counter("node_disk_reads_merged_total", "The total number of reads merged.", float64(s.ReadMerges), "device", d.DeviceName)
		e.counter("node_disk_read_bytes_total", "The total number of bytes read successfully.", sectorBytes*float64(s.ReadSectors), "device", d.DeviceName)
		e.counter("node_disk_read_time_seconds_total", "The total number of seconds spent by all reads.", float64(s.ReadTicks)/1000, "device", d.DeviceName)
		e.counter("node_disk_writes_completed_total", "The total number of writes completed successfully.", float64(s.WriteIOs), "device", d.DeviceName)
		e.counter("node_disk_writes_merged_total", "The number of writes merged.", float64(s.WriteMerges), "device", d.DeviceName)
		e.counter("node_disk_written_bytes_total", "The total number of bytes written successfully.", sectorBytes*float64(s.WriteSectors), "device", d.DeviceName)
		e.counter("node_disk_write_time_seconds_total", "This is the total number of seconds spent by all writes.", float64(s.WriteTicks)/1000, "device", d.DeviceName)
		e.gauge("node_disk_io_now", "The number of I/Os currently in progress.", float64(s.IOsInProgress), "device", d.DeviceName)
		e.counter("node_disk_io_time_seconds_total", "Total seconds spent doing I/Os.", float64(s.IOsTotalTicks)/1000, "device", d.DeviceName)
		e.counter("node_disk_io_time_weighted_seconds_total", "The weighted number of seconds spent doing I/Os.", float64(s.WeightedIOTicks)/1000, "device", d.DeviceName)
	}
	return nil
}

var (
	// ignoredTypes matches filesystems without storage, and remote ones, whose statistics block
	// while their server is unavailable.
	ignoredTypes = regexp.MustCompile(`^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs|nfs4?|cifs|smb3|ceph|glusterfs|9p|fuse\..*)$`)
	// ignoredMounts matches mounts without data of their own, or of containers.
	ignoredMounts = regexp.MustCompile(`^/(dev|proc|run/credentials/.+|sys|var/lib/(docker|containers)/.+)($|/)`)
)

// filesystemStat is the state of a mounted filesystem; space is in bytes.
type filesystemStat struct {
	size, free, avail float64
	files, filesFree  float64
}

func collectFilesystems(fs procfs.FS, stat func(path string) (filesystemStat, error), e emit) error {
	self, err := fs.Self()
	if err != nil {
		return fmt.Errorf("find own process: %w", err)
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	// Of filesystems mounted at the same place only one is reported: programs see the upper one.
	seen := map[[3]string]bool{}
	for _, m := range mounts {
		key := [3]string{m.Source, m.MountPoint, m.FSType}
		if seen[key] || ignoredTypes.MatchString(m.FSType) || ignoredMounts.MatchString(m.MountPoint) {
			continue
		}
		seen[key] = true
		emitFilesystem(m, stat, e)
	}
	return nil
}

func emitFilesystem(m *procfs.MountInfo, stat func(string) (filesystemStat, error), e emit) {
	gauge := func(name, help string, v float64) {
		e.gauge("node_filesystem_"+name, help, v, "device", m.Source, "mountpoint", m.MountPoint, "fstype", m.FSType)
	}
	s, err := stat(m.MountPoint)
	gauge("device_error", "Whether an error occurred while getting statistics for the given device.", truth(err != nil && !errors.Is(err, errUnsupported)))
	if err != nil {
		return
	}
	_, readonly := m.Options["ro"]
	gauge("size_bytes", "Filesystem size in bytes.", s.size)
	gauge("free_bytes", "Filesystem free space in bytes.", s.free)
	gauge("avail_bytes", "Filesystem space available to non-root users in bytes.", s.avail)
	gauge("files", "Filesystem total file nodes.", s.files)
	gauge("files_free", "Filesystem total free file nodes.", s.filesFree)
	gauge("readonly", "Filesystem read-only status.", truth(readonly))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func collectNetwork(fs procfs.FS, e emit) error {
	devices, err := fs.NetDev()
	if err != nil {
		return fmt.Errorf("read network devices: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		d := devices[name]
		for _, f := range []struct {
			name string
			v    uint64
		}{
			{"receive_bytes", d.RxBytes},
			{"receive_compressed", d.RxCompressed},
			{"receive_drop", d.RxDropped},
			{"receive_errs", d.RxErrors},
			{"receive_fifo", d.RxFIFO},
			{"receive_frame", d.RxFrame},
			{"receive_multicast", d.RxMulticast},
			{"receive_packets", d.RxPackets},
			{"transmit_bytes", d.TxBytes},
			{"transmit_carrier", d.TxCarrier},
			{"transmit_colls", d.TxCollisions},
			{"transmit_compressed", d.TxCompressed},
			{"transmit_drop", d.TxDropped},
			{"transmit_errs", d.TxErrors},
			{"transmit_fifo", d.TxFIFO},
			{"transmit_packets", d.TxPackets},
		} {
			e.counter("node_network_"+f.name+"_total", "Network device statistic "+f.name+".", float64(f.v), "device", name)
		}
	}
	return nil
}
