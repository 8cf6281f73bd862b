package fleet

import (
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
)

var (
	roles = [...]string{"web", "database", "cache", "queue", "batch"}
	// envs holds every environment as often as its share: 6 of 10 hosts are in production.
	envs = [...]string{"prod", "prod", "staging", "prod", "dev", "prod", "prod", "staging", "prod", "dev"}
)

type label struct{ Name, Value string }

// hostLabels returns the labels that identify a host.
func hostLabels(host int) []label {
	return []label{
		{"env", envs[host/len(roles)%len(envs)]},
		{"host_number", fmt.Sprintf("%d", host)},
		{"instance", fmt.Sprintf("host_%d:9100", host)},
		{"job", "node_exporter"},
		{"role", roles[host%len(roles)]},
	}
}

// withHost returns l with the labels of host.
func withHost(l labels.Labels, host int) labels.Labels {
	b := labels.NewBuilder(l)
	for _, add := range hostLabels(host) {
		b.Set(add.Name, add.Value)
	}
	return b.Labels()
}

// phase is the scrape of the capture at which a host begins. Neighbours begin seven scrapes apart.
func phase(host int) int { return host * 7 }

// seed is a hash of host and series: the finaliser of SplitMix64 (Steele, Lea, Flood: Fast
// Splittable Pseudorandom Number Generators, 2014) over their packed numbers.
func seed(host, series int) uint64 { return mix(uint64(host)<<32 | uint64(series)) }

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit maps a hash to [0, 1).
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }
