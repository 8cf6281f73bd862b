package disk

import "github.com/promlake/promlake/tests/bench/table"

// Life is what samples cost a server until they are compacted.
type Life struct {
	Samples int64   `json:"samples"`
	Series  int64   `json:"series"`
	Load    float64 `json:"load_cpu_s"` // processor time, user and system, while they are loaded
	LoadRSS uint64  `json:"load_peak_rss_bytes"`
	Kept    Files   `json:"kept_bytes,omitempty"` // afterwards
	// of Promlake; the other servers merge while they are loaded
	Compaction *Compaction `json:"compaction,omitempty"`
}

// Compare returns the figures of samples with a name: load, compaction, and bytes. The load of a
// peer (nil: there is none) contains its merges.
func Compare(name string, own, peer *Life) (out []table.Comparison) {
	add := func(what, unit string, of func(*Life) float64) {
		c := table.Comparison{Name: name + ": " + what, Unit: unit, Promlake: of(own)}
		if peer != nil {
			c.Peer = of(peer)
		}
		out = append(out, c)
	}
	alone := func(what, unit string, v float64) {
		out = append(out, table.Comparison{Name: name + ": " + what, Unit: unit, Promlake: v})
	}
	add("load", CPUUnit, func(l *Life) float64 { return l.perMillion(l.Load) })
	add("load, peak memory", "MB", func(l *Life) float64 { return float64(l.LoadRSS) / 1e6 })
	if own.Compaction != nil {
		alone("compaction", CPUUnit, own.perMillion(own.Compaction.CPU.Seconds()))
		alone("compaction", "passes", float64(own.Compaction.Read())/float64(own.Samples))
		add("compaction", "CPU-s", func(l *Life) float64 {
			if l.Compaction == nil {
				return l.Load
			}
			return l.Compaction.CPU.Seconds()
		})
		add("compaction, peak memory", "MB", func(l *Life) float64 {
			if l.Compaction == nil {
				return float64(l.LoadRSS) / 1e6
			}
			return float64(l.Compaction.PeakRSS) / 1e6
		})
		add("load and compaction", CPUUnit, func(l *Life) float64 {
			if l.Compaction == nil {
				return l.perMillion(l.Load)
			}
			return l.perMillion(l.Load + l.Compaction.CPU.Seconds())
		})
	}
	if own.Kept != nil {
		add("live", "bytes per sample", func(l *Life) float64 { return float64(l.live()) / float64(l.Samples) })
		add("live with rollups", "bytes per sample", func(l *Life) float64 { return float64(l.Kept.Bytes()) / float64(l.Samples) })
		alone("rollups on top", "bytes per sample", float64(own.Kept.Rollups())/float64(own.Samples))
		add("live", "bytes per series", func(l *Life) float64 { return float64(l.live()) / float64(l.Series) })
		alone("rollups on top", "bytes per series", float64(own.Kept.Rollups())/float64(own.Series))
	}
	return out
}

// CPUUnit is the unit of processor time of samples.
const CPUUnit = "CPU-s per million samples"

func (l *Life) perMillion(seconds float64) float64 { return seconds / float64(l.Samples) * 1e6 }

// live is the size without rollups, which only Promlake has.
func (l *Life) live() int64 { return l.Kept.Bytes() - l.Kept.Rollups() }
