package demo

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

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
