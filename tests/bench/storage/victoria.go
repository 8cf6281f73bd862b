package storage

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/server"
)

// measureVictoria feeds VictoriaMetrics, merges all its parts, stops it and measures its files.
func measureVictoria(ctx context.Context, spec server.Spec, r *fleet.Replay, rounds int, dir string) (res result, err error) {
	// the replayed day is older than the default retention of a month
	p, err := server.Start(ctx, spec.With("-retentionPeriod=100y"), dir)
	if err != nil {
		return res, err
	}
	res, err = loadVictoria(ctx, p, r, rounds)
	if err = errors.Join(err, p.Stop()); err != nil {
		return res, err
	}
	res.Files, err = disk.Victoria(filepath.Join(dir, "data"))
	return res, err
}

func loadVictoria(ctx context.Context, p *server.Process, r *fleet.Replay, rounds int) (result, error) {
	res := result{Name: server.VictoriaMetrics}
	var err error
	if res.Samples, err = feed(ctx, p.WriteURL(), r, rounds); err != nil {
		return res, err
	}
	return res, peer.MergeAll(ctx, strings.TrimSuffix(p.WriteURL(), "/api/v1/write"), 1)
}
