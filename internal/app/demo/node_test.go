package demo

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
)

var procFiles = map[string]string{
	"stat": `cpu  100 200 300 400 500 600 700 800 900 1000
cpu0 100 200 300 400 500 600 700 800 900 1000
intr 8885917 17 0
ctxt 38014093
btime 1418183276
processes 26442
procs_running 2
procs_blocked 1
softirq 0 0 0 0 0 0 0 0 0 0 0
`,
	"meminfo": `MemTotal:       15666184 kB
MemAvailable:   12000000 kB
Active(anon):    4000000 kB
HugePages_Total:       3
`,
	"loadavg": "0.21 0.37 0.39 1/719 19737\n",
	"diskstats": `   8       0 sda 10 20 30 4000 50 60 70 8000 9 1000 11000
   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11
   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11
`,
	"net/dev": `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
  eth0: 1001 1002 1003 1004 1005 1006 1007 1008 2001 2002 2003 2004 2005 2006 2007 2008
`,
	"pressure/cpu":    "some avg10=0.10 avg60=2.00 avg300=3.85 total=15000000\n",
	"pressure/io":     "some avg10=0.10 avg60=2.00 avg300=3.85 total=25000000\nfull avg10=0.20 avg60=3.00 avg300=4.95 total=35000000\n",
	"pressure/memory": "some avg10=0.10 avg60=2.00 avg300=3.85 total=1\nfull avg10=0.20 avg60=3.00 avg300=4.95 total=2\n",
	"7/mountinfo": `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
24 22 0:5 / /proc rw - proc proc rw
25 22 0:6 / /mnt/share rw - nfs4 server:/share rw
26 22 8:2 / /media ro,relatime - vfat /dev/sdb1 ro
`,
}

// fakeProc writes a proc filesystem with the given files.
func fakeProc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink("7", filepath.Join(dir, "self")))
	return dir
}

func TestCollectGolden(t *testing.T) {
	c, err := NewCollector(fakeProc(t, procFiles), slog.New(slog.DiscardHandler), func() time.Time { return time.UnixMilli(1500) })
	require.NoError(t, err)
	for _, tc := range []struct {
		kind string
		want string // one value per line
	}{
		{"counter", `node_cpu_seconds_total{cpu="0",mode="idle"} 4
node_cpu_seconds_total{cpu="0",mode="iowait"} 5
node_cpu_seconds_total{cpu="0",mode="irq"} 6
node_cpu_seconds_total{cpu="0",mode="nice"} 2
node_cpu_seconds_total{cpu="0",mode="softirq"} 7
node_cpu_seconds_total{cpu="0",mode="steal"} 8
node_cpu_seconds_total{cpu="0",mode="system"} 3
node_cpu_seconds_total{cpu="0",mode="user"} 1`},
		{"counter", `node_cpu_guest_seconds_total{cpu="0",mode="nice"} 10
node_cpu_guest_seconds_total{cpu="0",mode="user"} 9`},
		{"gauge", `node_boot_time_seconds 1.418183276e+09`},
		{"counter", `node_context_switches_total 3.8014093e+07`},
		{"gauge", `node_procs_blocked 1`},
		{"gauge", `node_load1 0.21`},
		{"gauge", `node_load15 0.39`},
		{"gauge", `node_time_seconds 1.5`},
		{"gauge", `node_memory_MemTotal_bytes 1.6042172416e+10`},
		{"gauge", `node_memory_Active_anon_bytes 4.096e+09`},
		{"gauge", `node_memory_HugePages_Total 3`},
		{"counter", `node_disk_reads_completed_total{device="sda"} 10`},
		{"counter", `node_disk_read_bytes_total{device="sda"} 15360`},
		{"counter", `node_disk_read_time_seconds_total{device="sda"} 4`},
		{"counter", `node_disk_written_bytes_total{device="sda"} 35840`},
		{"gauge", `node_disk_io_now{device="sda"} 9`},
		{"counter", `node_disk_io_time_seconds_total{device="sda"} 1`},
		{"counter", `node_disk_io_time_weighted_seconds_total{device="sda"} 11`},
		{"counter", `node_network_receive_bytes_total{device="eth0"} 1001`},
		{"counter", `node_network_receive_multicast_total{device="eth0"} 1008`},
		{"counter", `node_network_transmit_colls_total{device="eth0"} 2006`},
		{"counter", `node_network_transmit_compressed_total{device="eth0"} 2008`},
		{"counter", `node_pressure_cpu_waiting_seconds_total 15`},
		{"counter", `node_pressure_io_stalled_seconds_total 35`},
	} {
		name, _, _ := strings.Cut(strings.Fields(tc.want)[0], "{")
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n%[4]s\n", name, helpOf(t, c, name), tc.kind, tc.want)
			require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(text), name))
		})
	}
}

// helpOf returns a family's help text, which the golden table does not contain.
func helpOf(t *testing.T, c prometheus.Collector, name string) string {
	t.Helper()
	f, ok := gather(t, c)[name]
	require.True(t, ok, "no metric %s", name)
	require.NotEmpty(t, f.GetHelp())
	return f.GetHelp()
}

func gather(t *testing.T, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(c))
	families, err := reg.Gather()
	require.NoError(t, err)
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

func TestMissingPartsAreTold(t *testing.T) {
	c, err := NewCollector(fakeProc(t, map[string]string{"loadavg": procFiles["loadavg"]}), slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	got := map[string]float64{}
	for _, m := range gather(t, c)["node_scrape_collector_success"].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	require.Equal(t, 1.0, got["loadavg"])
	for _, name := range []string{"cpu", "diskstats", "filesystem", "meminfo", "netdev", "pressure"} {
		require.Equal(t, 0.0, got[name], name)
	}
}

func TestNewWithoutProc(t *testing.T) {
	_, err := NewCollector(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler), time.Now)
	require.ErrorContains(t, err, "open proc")
}

func TestFilesystems(t *testing.T) {
	fs, err := procfs.NewFS(fakeProc(t, procFiles))
	require.NoError(t, err)
	var got []string
	stat := func(path string) (filesystemStat, error) {
		if path == "/media" {
			return filesystemStat{}, errors.New("no medium")
		}
		return filesystemStat{size: 100, free: 50, avail: 40, files: 10, filesFree: 5}, nil
	}
	require.NoError(t, collectFilesystems(fs, stat, func(name, _ string, _ prometheus.ValueType, v float64, labels ...string) {
		require.Equal(t, []string{"device", "mountpoint", "fstype"}, []string{labels[0], labels[2], labels[4]})
		got = append(got, fmt.Sprintf("%s%v %v", name, []string{labels[1], labels[3], labels[5]}, v))
	}))
	require.Equal(t, []string{
		"node_filesystem_device_error[/dev/sda1 / ext4] 0",
		"node_filesystem_size_bytes[/dev/sda1 / ext4] 100",
		"node_filesystem_free_bytes[/dev/sda1 / ext4] 50",
		"node_filesystem_avail_bytes[/dev/sda1 / ext4] 40",
		"node_filesystem_files[/dev/sda1 / ext4] 10",
		"node_filesystem_files_free[/dev/sda1 / ext4] 5",
		"node_filesystem_readonly[/dev/sda1 / ext4] 0",
		"node_filesystem_device_error[/dev/sdb1 /media vfat] 1",
	}, got)
}

// TestThisMachine reads the real /proc: the main families exist, and counters never decrease.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/stat"); err != nil {
		t.Skip("no /proc on this operating system")
	}
	c, err := NewCollector("/proc", slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	before := gather(t, c)
	for _, name := range []string{
		"node_cpu_seconds_total", "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes", "node_load1",
		"node_network_receive_bytes_total", "node_boot_time_seconds", "node_uname_info",
	} {
		require.Contains(t, before, name)
	}
	after := gather(t, c)
	for name, f := range after {
		if f.GetType() != dto.MetricType_COUNTER || name == "node_cpu_seconds_total" {
			continue // the kernel's idle and iowait times may decrease
		}
		require.GreaterOrEqual(t, total(f), total(before[name]), name)
	}
}

func total(f *dto.MetricFamily) (sum float64) {
	for _, m := range f.GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}
