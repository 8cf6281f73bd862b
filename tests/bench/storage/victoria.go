package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/server"
)

const (
	mergePoll    = 500 * time.Millisecond
	mergeTimeout = 10 * time.Minute
	quietLooks   = 4 // in a row without a merge that say that merging is over
)

// measureVictoria feeds VictoriaMetrics, has it merge all that it holds, stops it and measures its files.
func measureVictoria(ctx context.Context, spec server.Spec, r *fleet.Replay, rounds int, dir string) (res result, err error) {
	base := spec.Args
	// The day that is replayed lies further back than the month that it keeps by default.
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
	return res, mergeAll(ctx, strings.TrimSuffix(p.WriteURL(), "/api/v1/write"))
}

// mergeAll forces merges until the samples are in one part: a forced merge leaves out the parts that another one has at that moment.
func mergeAll(ctx context.Context, root string) error {
	ctx, cancel := context.WithTimeout(ctx, mergeTimeout)
	defer cancel()
	for {
		for _, path := range []string{"/internal/force_flush", "/internal/force_merge"} {
			if _, err := get(ctx, root+path); err != nil {
				return fmt.Errorf("ask for %s: %w", path, err)
			}
		}
		parts, err := awaitMerges(ctx, root+"/metrics")
		if err != nil {
			return err
		}
		if parts == 1 {
			return nil
		}
	}
}

// awaitMerges returns the number of parts of samples once no merge is under way at several looks in a row: a forced merge begins after its
// request was answered.
func awaitMerges(ctx context.Context, url string) (parts float64, err error) {
	poll := time.NewTicker(mergePoll)
	defer poll.Stop()
	for quiet := 0; quiet < quietLooks; {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for merges, %v parts now: %w", parts, context.Cause(ctx))
		case <-poll.C:
		}
		var active float64
		if active, parts, err = merges(ctx, url); err != nil {
			return 0, fmt.Errorf("read merges under way: %w", err)
		}
		if quiet++; active > 0 {
			quiet = 0
		}
	}
	return parts, nil
}

// merges adds up VictoriaMetrics's counts of merges that run and of parts that hold samples (those of the index aside).
func merges(ctx context.Context, url string) (active, parts float64, err error) {
	text, err := get(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, 0, fmt.Errorf("parse metrics: %w", err)
	}
	if families["vm_active_merges"] == nil || families["vm_parts"] == nil {
		return 0, 0, errors.New("vm_active_merges or vm_parts is not among them")
	}
	for _, name := range []string{"vm_active_merges", "vm_active_force_merges"} {
		active += total(families[name], "")
	}
	return active, total(families["vm_parts"], "storage/"), nil
}

// total adds up the values of a family whose label type begins with prefix.
func total(f *dto.MetricFamily, prefix string) (sum float64) {
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "type" && !strings.HasPrefix(l.GetValue(), prefix) {
				m = nil
				break
			}
		}
		sum += m.GetUntyped().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	return do(req)
}

// victoriaKind names the kind of a file: its samples and their headers, the index of series, or what it writes beside them (caches,
// locks), which does not count.
func victoriaKind(rel string) string {
	switch top, _, _ := strings.Cut(rel, string(filepath.Separator)); top {
	case "data":
		return "samples: " + filepath.Base(rel)
	case "indexdb":
		return "index"
	}
	return ""
}
