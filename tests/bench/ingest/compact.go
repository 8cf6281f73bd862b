package ingest

import (
	"context"
	"path/filepath"
	"time"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/server"
)

// day is when the samples of a load begin that is compacted. It lies in the past, so that all its
// windows are closed.
var day = time.Date(2026, time.March, 3, 0, 0, 0, 0, time.UTC)

// alone returns the server as one that takes samples of the past, and does not compact them while
// it is loaded if compaction is a process of its own.
func alone(spec server.Spec) server.Spec {
	switch spec.Name {
	case server.Promlake:
		return spec.With("--no-compactor.enabled")
	case server.VictoriaMetrics:
		return spec.With("-retentionPeriod=100y")
	}
	return spec
}

// compact compacts what a server that has ended stored, and measures the files that stay.
func (r *run) compact(ctx context.Context, spec server.Spec, dir string) (err error) {
	switch spec.Name {
	case server.Promlake:
		store := server.Store(dir)
		if r.Compacted, err = disk.Compact(ctx, spec.Binary, store, dir, disk.Settled); err != nil {
			return err
		}
		live, err := disk.ReadLive(ctx, store, r.Report.Samples)
		r.Kept = live.Files
		return err
	case server.VictoriaMetrics:
		r.Kept, err = disk.Victoria(filepath.Join(dir, "data"))
	}
	return err
}
