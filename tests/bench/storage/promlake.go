package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore/filestore"
	"github.com/promlake/promlake/internal/tenant"
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
	store := filepath.Join(dir, "store")
	if res.Compact, err = compact(ctx, f.ServerBin, store, dir); err != nil {
		return res, err
	}
	blocks, err := res.addLive(ctx, store)
	if err != nil {
		return res, err
	}
	if res.Columns, err = columnBytes(sampleFiles(blocks)); err != nil {
		return res, err
	}
	if f.ScanRuns > 0 {
		res.Scan, err = compareScans(ctx, sampleFiles(blocks), filepath.Join(dir, "plain"), f.ScanRuns)
	}
	return res, err
}

// addLive measures the live blocks of the manifest and returns their folders. It returns an error
// if they do not hold all samples, because the figures would not be those of a compacted day.
func (r *result) addLive(ctx context.Context, dir string) ([]string, error) {
	store, err := filestore.New(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	m, _, err := catalog.ReadManifest(ctx, store, tenant.Default)
	if err != nil {
		return nil, err
	}
	var folders []string
	var samples int64
	for _, b := range m.Blocks {
		r.Levels = append(r.Levels, b.Level.String())
		samples += b.Samples
		folder := filepath.Join(dir, filepath.FromSlash(b.Key(tenant.Default).Prefix()))
		folders = append(folders, folder)
		if err := r.addFiles(folder, blockKind); err != nil {
			return nil, err
		}
	}
	if samples != r.Samples {
		return nil, fmt.Errorf("live blocks hold %d samples, %d were sent", samples, r.Samples)
	}
	return folders, nil
}

// blockKind is the name of a file of a block without its number.
func blockKind(rel string) string {
	name, _, _ := strings.Cut(rel, "-0")
	return strings.TrimSuffix(name, ".parquet")
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
