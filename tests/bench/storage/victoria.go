package storage

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/server"
)

// measureVictoria feeds VictoriaMetrics, merges all its parts, stops it and measures its files.
func measureVictoria(ctx context.Context, spec server.Spec, r *fleet.Replay, rounds int, dir string) (res result, err error) {
	base := spec.Args
	// The replayed day is older than the default retention of a month.
	spec.Args = func(addr, dir string) []string { return append(base(addr, dir), "-retentionPeriod=100y") }
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return res, err
	}
	res, err = loadVictoria(ctx, p, r, rounds)
	if err = errors.Join(err, p.Stop()); err != nil {
		return res, err
	}
	return res, res.addFiles(filepath.Join(dir, "data"), victoriaKind)
}

func loadVictoria(ctx context.Context, p *server.Process, r *fleet.Replay, rounds int) (result, error) {
	res := result{Name: server.VictoriaMetrics}
	var err error
	if res.Samples, err = feed(ctx, p.WriteURL(), r, rounds); err != nil {
		return res, err
	}
	return res, peer.MergeAll(ctx, strings.TrimSuffix(p.WriteURL(), "/api/v1/write"), 1)
}

// victoriaKind names the kind of a file: its samples and their headers, the index of series, or
// other files (caches, locks), which does not count.
func victoriaKind(rel string) string {
	switch top, _, _ := strings.Cut(rel, string(filepath.Separator)); top {
	case "data":
		return "samples: " + filepath.Base(rel)
	case "indexdb":
		return "index"
	}
	return ""
}
