package seeds

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/promlake/promlake/tests/bench/query"
)

// devops are the nine measurements of the use case devops of TSBS, with 101 fields.
var devops = []measurement{cpu, diskio, diskSpace, kernel, mem, net, nginx, postgresql, redis}

// Devops is the use case devops of TSBS: about this number of series, each 10 s. It has no queries,
// because TSBS asks the metrics of cpu, as in cpu-only.
func Devops(series, samples int) *query.Set {
	fields := 0
	for _, m := range devops {
		fields += len(m.fields)
	}
	return tsbs("TSBS devops", (series+fields/2)/fields, time.Duration(samples)*tsbsInterval, devops...)
}

var diskio = measurement{
	name: "diskio",
	tags: func(rng *rand.Rand) []string {
		return []string{"serial", fmt.Sprintf("%03d-%03d-%03d", rng.IntN(1000), rng.IntN(1000), rng.IntN(1000))}
	},
	fields: []field{
		{"reads", counter(50)}, {"writes", counter(50)}, {"read_bytes", counter(100)}, {"write_bytes", counter(100)},
		{"read_time", counter(5)}, {"write_time", counter(5)}, {"io_time", counter(5)},
	},
}

const (
	diskBytes  = 1 << 40
	inodeBytes = 4096
)

// ofDisk shows the free bytes of a disk, which grow until all of it is free.
func ofDisk(show func(free float64) float64) walk {
	return func(rng *rand.Rand) func() float64 {
		free := gauge(50, diskBytes, diskBytes/2)(rng)
		return func() float64 { return show(free()) }
	}
}

var diskSpace = measurement{
	name:  "disk",
	joint: true,
	tags: func(rng *rand.Rand) []string {
		return []string{"path", fmt.Sprintf("/dev/sda%d", rng.IntN(10)), "fstype", []string{"ext3", "ext4", "btrfs"}[rng.IntN(3)]}
	},
	fields: []field{
		{"total", ofDisk(func(float64) float64 { return diskBytes })},
		{"free", ofDisk(func(free float64) float64 { return free })},
		{"used", ofDisk(func(free float64) float64 { return diskBytes - free })},
		{"used_percent", ofDisk(func(free float64) float64 { return math.Trunc(100 * (diskBytes - free) / diskBytes) })},
		{"inodes_total", ofDisk(func(float64) float64 { return diskBytes / inodeBytes })},
		{"inodes_free", ofDisk(func(free float64) float64 { return math.Trunc(free / inodeBytes) })},
		{"inodes_used", ofDisk(func(free float64) float64 { return diskBytes/inodeBytes - math.Trunc(free/inodeBytes) })},
	},
}

var kernel = measurement{name: "kernel", fields: []field{
	{"boot_time", func(rng *rand.Rand) func() float64 {
		at := float64(rng.IntN(240))
		return func() float64 { return at }
	}},
	{"interrupts", counter(5)}, {"context_switches", counter(5)}, {"processes_forked", counter(5)},
	{"disk_pages_in", counter(5)}, {"disk_pages_out", counter(5)},
}}

// memory is what a host has, and whole walks of its uses.
type memory struct{ total, used, cached, buffered float64 }

// ofMemory shows a host's memory.
func ofMemory(show func(memory) float64) walk {
	return func(rng *rand.Rand) func() float64 {
		total := float64([]int64{8 << 30, 12 << 30, 16 << 30}[rng.IntN(3)])
		bytes := func() func() float64 { return whole(between(rng, 0, total/64, 0, total, rng.Float64()*total)) }
		used, cached, buffered := bytes(), bytes(), bytes()
		return func() float64 { return show(memory{total, used(), cached(), buffered()}) }
	}
}

var mem = measurement{name: "mem", joint: true, fields: []field{
	{"total", ofMemory(func(m memory) float64 { return m.total })},
	{"available", ofMemory(func(m memory) float64 { return m.total - m.used })},
	{"used", ofMemory(func(m memory) float64 { return m.used })},
	{"free", ofMemory(func(m memory) float64 { return m.total - m.used })},
	{"cached", ofMemory(func(m memory) float64 { return m.cached })},
	{"buffered", ofMemory(func(m memory) float64 { return m.buffered })},
	{"used_percent", ofMemory(func(m memory) float64 { return 100 * (m.used / m.total) })},
	{"available_percent", ofMemory(func(m memory) float64 { return 100 * ((m.total - m.used) / m.total) })},
	{"buffered_percent", ofMemory(func(m memory) float64 { return 100 * m.buffered / m.total })},
}}

var net = measurement{
	name: "net",
	tags: func(rng *rand.Rand) []string { return []string{"interface", fmt.Sprintf("eth%d", rng.IntN(4))} },
	fields: []field{
		{"bytes_sent", counter(50)}, {"bytes_recv", counter(50)}, {"packets_sent", counter(50)}, {"packets_recv", counter(50)},
		{"err_in", counter(5)}, {"err_out", counter(5)}, {"drop_in", counter(5)}, {"drop_out", counter(5)},
	},
}

// serving are the labels of a server of a kind.
func serving(kind string) func(*rand.Rand) []string {
	return func(rng *rand.Rand) []string {
		return []string{"server", fmt.Sprintf("%s_%d", kind, rng.IntN(100_000)), "port", strconv.Itoa(1024 + rng.IntN(20_000))}
	}
}

var nginx = measurement{name: "nginx", tags: serving("nginx"), fields: []field{
	{"accepts", counter(5)}, {"active", gauge(5, 100, 0)}, {"handled", counter(5)}, {"reading", gauge(5, 100, 0)},
	{"requests", counter(5)}, {"waiting", gauge(5, 100, 0)}, {"writing", gauge(5, 100, 0)},
}}

// postgresql has the name that TSBS gives it.
var postgresql = measurement{name: "postgresl", fields: []field{
	{"numbackends", gauge(5, 1000, 0)}, {"xact_commit", gauge(5, 1000, 0)}, {"xact_rollback", gauge(5, 1000, 0)}, {"blks_read", gauge(5, 1000, 0)},
	{"blks_hit", gauge(5, 1000, 0)}, {"tup_returned", gauge(5, 1000, 0)}, {"tup_fetched", gauge(5, 1000, 0)}, {"tup_inserted", gauge(5, 1000, 0)},
	{"tup_updated", gauge(5, 1000, 0)}, {"tup_deleted", gauge(5, 1000, 0)}, {"conflicts", gauge(5, 1000, 0)}, {"temp_files", gauge(5, 1000, 0)},
	{"temp_bytes", gauge(1024, 1<<30, 0)}, {"deadlocks", gauge(5, 1000, 0)}, {"blk_read_time", gauge(5, 1000, 0)}, {"blk_write_time", gauge(5, 1000, 0)},
}}

var redis = measurement{name: "redis", tags: serving("redis"), fields: []field{
	{"uptime_in_seconds", func(*rand.Rand) func() float64 {
		up := -tsbsInterval
		return func() float64 { up += tsbsInterval; return up.Seconds() }
	}},
	{"total_connections_received", counter(5)}, {"expired_keys", counter(50)}, {"evicted_keys", counter(50)},
	{"keyspace_hits", counter(50)}, {"keyspace_misses", counter(50)},
	{"instantaneous_ops_per_sec", free(1)}, {"instantaneous_input_kbps", free(1)}, {"instantaneous_output_kbps", free(1)},
	{"connected_clients", gauge(50, 10_000, 0)},
	{"used_memory", gauge(50, 16<<30, 8<<30)}, {"used_memory_rss", gauge(50, 16<<30, 8<<30)},
	{"used_memory_peak", gauge(50, 16<<30, 8<<30)}, {"used_memory_lua", gauge(50, 16<<30, 8<<30)},
	{"rdb_changes_since_last_save", gauge(50, 10_000, 0)},
	{"sync_full", gauge(5, 1000, 0)}, {"sync_partial_ok", gauge(5, 1000, 0)}, {"sync_partial_err", gauge(5, 1000, 0)},
	{"pubsub_channels", gauge(5, 1000, 0)}, {"pubsub_patterns", gauge(5, 1000, 0)}, {"latest_fork_usec", gauge(5, 1000, 0)},
	{"connected_slaves", gauge(5, 1000, 0)}, {"master_repl_offset", gauge(5, 1000, 0)}, {"repl_backlog_active", gauge(5, 1000, 0)},
	{"repl_backlog_size", gauge(5, 1000, 0)}, {"repl_backlog_histlen", gauge(5, 1000, 0)}, {"mem_fragmentation_ratio", gauge(5, 100, 0)},
	{"used_cpu_sys", gauge(5, 1000, 0)}, {"used_cpu_user", gauge(5, 1000, 0)},
	{"used_cpu_sys_children", gauge(5, 1000, 0)}, {"used_cpu_user_children", gauge(5, 1000, 0)},
}}
