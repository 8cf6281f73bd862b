package demo

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

func collectMemory(fs procfs.FS, e emit) error {
	m, err := fs.Meminfo()
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	for _, f := range memoryFields(m) {
		if f.v != nil {
			e(desc("node_memory_"+f.name, "Memory information field "+f.name+"."), prometheus.GaugeValue, float64(*f.v))
		}
	}
	return nil
}

type memoryField struct {
	name string
	v    *uint64 // nil: the kernel does not report it
}

// memoryFields returns the fields of /proc/meminfo with node_exporter's names; those in bytes end
// with _bytes.
func memoryFields(m procfs.Meminfo) []memoryField {
	return []memoryField{
		{"Active_anon_bytes", m.ActiveAnonBytes},
		{"Active_bytes", m.ActiveBytes},
		{"Active_file_bytes", m.ActiveFileBytes},
		{"AnonHugePages_bytes", m.AnonHugePagesBytes},
		{"AnonPages_bytes", m.AnonPagesBytes},
		{"Bounce_bytes", m.BounceBytes},
		{"Buffers_bytes", m.BuffersBytes},
		{"Cached_bytes", m.CachedBytes},
		{"CmaFree_bytes", m.CmaFreeBytes},
		{"CmaTotal_bytes", m.CmaTotalBytes},
		{"CommitLimit_bytes", m.CommitLimitBytes},
		{"Committed_AS_bytes", m.CommittedASBytes},
		{"DirectMap1G_bytes", m.DirectMap1GBytes},
		{"DirectMap2M_bytes", m.DirectMap2MBytes},
		{"DirectMap4k_bytes", m.DirectMap4kBytes},
		{"Dirty_bytes", m.DirtyBytes},
		{"FileHugePages_bytes", m.FileHugePagesBytes},
		{"HardwareCorrupted_bytes", m.HardwareCorruptedBytes},
		{"HugePages_Free", m.HugePagesFree},
		{"HugePages_Rsvd", m.HugePagesRsvd},
		{"HugePages_Surp", m.HugePagesSurp},
		{"HugePages_Total", m.HugePagesTotal},
		{"Hugepagesize_bytes", m.HugepagesizeBytes},
		{"Hugetlb_bytes", m.HugetlbBytes},
		{"Inactive_anon_bytes", m.InactiveAnonBytes},
		{"Inactive_bytes", m.InactiveBytes},
		{"Inactive_file_bytes", m.InactiveFileBytes},
		{"KernelStack_bytes", m.KernelStackBytes},
		{"Mapped_bytes", m.MappedBytes},
		{"MemAvailable_bytes", m.MemAvailableBytes},
		{"MemFree_bytes", m.MemFreeBytes},
		{"MemTotal_bytes", m.MemTotalBytes},
		{"Mlocked_bytes", m.MlockedBytes},
		{"NFS_Unstable_bytes", m.NFSUnstableBytes},
		{"PageTables_bytes", m.PageTablesBytes},
		{"Percpu_bytes", m.PercpuBytes},
		{"SReclaimable_bytes", m.SReclaimableBytes},
		{"SUnreclaim_bytes", m.SUnreclaimBytes},
		{"SecPageTables_bytes", m.SecPageTablesBytes},
		{"ShmemHugePages_bytes", m.ShmemHugePagesBytes},
		{"ShmemPmdMapped_bytes", m.ShmemPmdMappedBytes},
		{"Shmem_bytes", m.ShmemBytes},
		{"Slab_bytes", m.SlabBytes},
		{"SwapCached_bytes", m.SwapCachedBytes},
		{"SwapFree_bytes", m.SwapFreeBytes},
		{"SwapTotal_bytes", m.SwapTotalBytes},
		{"Unaccepted_bytes", m.UnacceptedBytes},
		{"Unevictable_bytes", m.UnevictableBytes},
		{"VmallocChunk_bytes", m.VmallocChunkBytes},
		{"VmallocTotal_bytes", m.VmallocTotalBytes},
		{"VmallocUsed_bytes", m.VmallocUsedBytes},
		{"WritebackTmp_bytes", m.WritebackTmpBytes},
		{"Writeback_bytes", m.WritebackBytes},
		{"Zswap_bytes", m.ZswapBytes},
		{"Zswapped_bytes", m.ZswappedBytes},
	}
}
