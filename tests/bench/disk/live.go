package disk

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

// Live holds the live blocks of a store in a directory.
type Live struct {
	Files   Files
	Folders []string // of the blocks
	Levels  []string // of the blocks
}

// ReadLive measures the live blocks of the store in dir. It returns an error if they do not hold
// exactly this many samples, because the figures would not be those of a compacted store.
func ReadLive(ctx context.Context, dir string, samples int64) (Live, error) {
	live := Live{Files: Files{}}
	store, err := filestore.New(dir)
	if err != nil {
		return live, fmt.Errorf("open store: %w", err)
	}
	m, _, err := catalog.ReadManifest(ctx, store, tenant.Default)
	if err != nil {
		return live, err
	}
	var held int64
	for _, b := range m.Blocks {
		live.Levels = append(live.Levels, b.Level.String())
		held += b.Samples
		folder := filepath.Join(dir, filepath.FromSlash(b.Key(tenant.Default).Prefix()))
		live.Folders = append(live.Folders, folder)
		if err := live.Files.add(folder, blockKind); err != nil {
			return live, err
		}
	}
	if held != samples {
		return live, fmt.Errorf("live blocks hold %d samples, %d were sent", held, samples)
	}
	return live, nil
}

// Objects counts the live segments and blocks of the store in dir.
func Objects(ctx context.Context, dir string) (segments, blocks int, err error) {
	store, err := filestore.New(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("open store: %w", err)
	}
	snap, err := catalog.Take(ctx, store, tenant.Default, math.MinInt64, math.MaxInt64)
	return len(snap.Segments), len(snap.Blocks), err
}

// blockKind is the name of a file of a block without its number.
func blockKind(rel string) string {
	name, _, _ := strings.Cut(rel, "-0")
	return strings.TrimSuffix(name, ".parquet")
}
