package storage

import "github.com/promlake/promlake/tests/bench/disk"

// result holds the measurements of one server.
type result struct {
	Name    string     `json:"name"`
	Samples int64      `json:"samples"`
	Files   disk.Files `json:"files"`            // bytes by kind of file
	Levels  []string   `json:"levels,omitempty"` // of Promlake's live blocks
	// of Promlake's files of samples: bytes by column
	Columns map[string]int64 `json:"columns,omitempty"`
	Compact *disk.Compaction `json:"compact,omitempty"`
	Scan    *scan            `json:"scan,omitempty"`
}

// share returns bytes per sample.
func (r *result) share(bytes int64) float64 { return float64(bytes) / float64(r.Samples) }
