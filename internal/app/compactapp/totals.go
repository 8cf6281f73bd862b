package compactapp

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals are the sums of a stage's metrics since it was created. Sizes are bytes.
type Totals struct {
	Jobs           int64 `json:"jobs"`      // that were done
	Conflicts      int64 `json:"conflicts"` // that another compactor was faster with
	Failed         int64 `json:"failed"`
	SamplesRead    int64 `json:"samples_read"`
	SamplesWritten int64 `json:"samples_written"`
	SamplesDeleted int64 `json:"samples_deleted"`
	BytesRead      int64 `json:"bytes_read"`
	BytesWritten   int64 `json:"bytes_written"`
	ObjectsRemoved int64 `json:"objects_removed"` // garbage
	BytesRemoved   int64 `json:"bytes_removed"`
}

// readTotals sums up the counters of the stage whose metrics are in reg.
func readTotals(reg prometheus.Gatherer) (Totals, error) {
	families, err := reg.Gather()
	if err != nil {
		return Totals{}, fmt.Errorf("read compaction's metrics: %w", err)
	}
	var t Totals
	outcomes := map[string]*int64{"done": &t.Jobs, "conflict": &t.Conflicts, "failed": &t.Failed}
	sums := map[string]*int64{
		"promlake_compact_samples_read_total":            &t.SamplesRead,
		"promlake_compact_samples_written_total":         &t.SamplesWritten,
		"promlake_compact_samples_deleted_total":         &t.SamplesDeleted,
		"promlake_compact_bytes_read_total":              &t.BytesRead,
		"promlake_compact_bytes_written_total":           &t.BytesWritten,
		"promlake_compact_garbage_deleted_objects_total": &t.ObjectsRemoved,
		"promlake_compact_garbage_deleted_bytes_total":   &t.BytesRemoved,
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sum, ok := sums[f.GetName()]
			if f.GetName() == "promlake_compact_jobs_total" {
				sum, ok = outcomes[label(m, "outcome")]
			}
			if ok {
				*sum += int64(m.GetCounter().GetValue())
			}
		}
	}
	return t, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
