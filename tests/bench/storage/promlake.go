package storage

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/server"
)

// measurePromlake feeds Promlake, stops it, compacts its store and measures its live blocks.
func (f *Flags) measurePromlake(ctx context.Context, spec server.Spec, r *fleet.Replay, rounds int, dir string) (result, error) {
	res := result{Name: server.Promlake}
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return res, err
	}
	res.Samples, err = feed(ctx, p.WriteURL(), r, rounds)
	if err = errors.Join(err, p.Stop()); err != nil {
		return res, err
	}
	store := server.Store(dir)
	if res.Compact, err = disk.Compact(ctx, f.ServerBin, store, dir, disk.Settled); err != nil {
		return res, err
	}
	live, err := disk.ReadLive(ctx, store, res.Samples)
	if err != nil {
		return res, err
	}
	res.Files, res.Levels = live.Files, live.Levels
	if res.Columns, err = columnBytes(sampleFiles(live.Folders)); err != nil {
		return res, err
	}
	if f.ScanRuns > 0 {
		res.Scan, err = compareScans(ctx, sampleFiles(live.Folders), filepath.Join(dir, "plain"), f.ScanRuns)
	}
	return res, err
}

// sampleFiles returns the files of float samples of blocks, in order.
func sampleFiles(folders []string) (files []string) {
	for _, f := range folders {
		found, err := filepath.Glob(filepath.Join(f, "samples-*.parquet"))
		if err != nil {
			panic(err) // the pattern is well-formed
		}
		slices.Sort(found)
		files = append(files, found...)
	}
	return files
}
