package demo

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

// ignoredDisks matches memory disks, loop devices, and partitions of disks that are reported as a
// whole; node_exporter ignores the same.
var ignoredDisks = regexp.MustCompile(`^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`)

// sectorBytes is the unit of /proc/diskstats, whatever the device's own sector size is.
const sectorBytes = 512

type diskField struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	v    func(blockdevice.IOStats) float64
}

func diskCounter(name, help string, v func(blockdevice.IOStats) float64) diskField {
	return diskField{desc("node_disk_"+name, help, "device"), prometheus.CounterValue, v}
}

func sectors(n uint64) float64      { return float64(n) * sectorBytes }
func milliseconds(n uint64) float64 { return float64(n) / 1000 }

var diskFields = []diskField{
	diskCounter("reads_completed_total", "The total number of reads completed successfully.", func(s blockdevice.IOStats) float64 { return float64(s.ReadIOs) }),
	diskCounter("reads_merged_total", "The total number of reads merged.", func(s blockdevice.IOStats) float64 { return float64(s.ReadMerges) }),
	diskCounter("read_bytes_total", "The total number of bytes read successfully.", func(s blockdevice.IOStats) float64 { return sectors(s.ReadSectors) }),
	diskCounter("read_time_seconds_total", "The total number of seconds spent by all reads.", func(s blockdevice.IOStats) float64 { return milliseconds(s.ReadTicks) }),
	diskCounter("writes_completed_total", "The total number of writes completed successfully.", func(s blockdevice.IOStats) float64 { return float64(s.WriteIOs) }),
	diskCounter("writes_merged_total", "The number of writes merged.", func(s blockdevice.IOStats) float64 { return float64(s.WriteMerges) }),
	diskCounter("written_bytes_total", "The total number of bytes written successfully.", func(s blockdevice.IOStats) float64 { return sectors(s.WriteSectors) }),
	diskCounter("write_time_seconds_total", "This is the total number of seconds spent by all writes.", func(s blockdevice.IOStats) float64 { return milliseconds(s.WriteTicks) }),
	{desc("node_disk_io_now", "The number of I/Os currently in progress.", "device"), prometheus.GaugeValue, func(s blockdevice.IOStats) float64 { return float64(s.IOsInProgress) }},
	diskCounter("io_time_seconds_total", "Total seconds spent doing I/Os.", func(s blockdevice.IOStats) float64 { return milliseconds(s.IOsTotalTicks) }),
	diskCounter("io_time_weighted_seconds_total", "The weighted number of seconds spent doing I/Os.", func(s blockdevice.IOStats) float64 { return milliseconds(s.WeightedIOTicks) }),
}

func collectDisks(fs blockdevice.FS, e emit) error {
	disks, err := fs.ProcDiskstats()
	if err != nil {
		return fmt.Errorf("read disk statistics: %w", err)
	}
	for _, d := range disks {
		if ignoredDisks.MatchString(d.DeviceName) {
			continue
		}
		for _, f := range diskFields {
			e(f.desc, f.kind, f.v(d.IOStats), d.DeviceName)
		}
	}
	return nil
}

var (
	// ignoredTypes matches filesystems without storage, and remote ones, whose statistics block
	// while their server is unavailable.
	ignoredTypes = regexp.MustCompile(`^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs|nfs4?|cifs|smb3|ceph|glusterfs|9p|fuse\..*)$`)
	// ignoredMounts matches mounts without data of their own, or of containers.
	ignoredMounts = regexp.MustCompile(`^/(dev|proc|run/credentials/.+|sys|var/lib/(docker|containers)/.+)($|/)`)

	fsSize      = filesystemDesc("size_bytes", "Filesystem size in bytes.")
	fsFree      = filesystemDesc("free_bytes", "Filesystem free space in bytes.")
	fsAvail     = filesystemDesc("avail_bytes", "Filesystem space available to non-root users in bytes.")
	fsFiles     = filesystemDesc("files", "Filesystem total file nodes.")
	fsFilesFree = filesystemDesc("files_free", "Filesystem total free file nodes.")
	fsReadonly  = filesystemDesc("readonly", "Filesystem read-only status.")
	fsError     = filesystemDesc("device_error", "Whether an error occurred while getting statistics for the given device.")
)

func filesystemDesc(name, help string) *prometheus.Desc {
	return desc("node_filesystem_"+name, help, "device", "mountpoint", "fstype")
}

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
	gauge := func(d *prometheus.Desc, v float64) { e(d, prometheus.GaugeValue, v, m.Source, m.MountPoint, m.FSType) }
	s, err := stat(m.MountPoint)
	gauge(fsError, truth(err != nil && !errors.Is(err, errUnsupported)))
	if err != nil {
		return
	}
	_, readonly := m.Options["ro"]
	gauge(fsSize, s.size)
	gauge(fsFree, s.free)
	gauge(fsAvail, s.avail)
	gauge(fsFiles, s.files)
	gauge(fsFilesFree, s.filesFree)
	gauge(fsReadonly, truth(readonly))
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
		for _, f := range networkFields(devices[name]) {
			d := desc("node_network_"+f.name+"_total", "Network device statistic "+f.name+".", "device")
			e(d, prometheus.CounterValue, float64(f.v), name)
		}
	}
	return nil
}

type networkField struct {
	name string
	v    uint64
}

// networkFields returns the columns of /proc/net/dev with node_exporter's names.
func networkFields(d procfs.NetDevLine) []networkField {
	return []networkField{
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
	}
}
