package demo

import (
	"fmt"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
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
