// Package compactapp connects the compaction stage to a process: its settings, its schedule, and
// one cycle on request.
package compactapp

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/store/recent"
)

// Background returns the builder of a stage that, once the process is ready, runs one cycle after
// another with a pause of interval between them.
func Background(s Settings, interval time.Duration) process.Builder {
	return Sharing(func(process.Parts) *recent.Segments { return nil }, s, false, interval)
}

// Sharing is Background for a stage that takes the segments that kept returns from memory. scrapes
// means that the process stores samples that it has scraped.
func Sharing(kept func(process.Parts) *recent.Segments, s Settings, scrapes bool, interval time.Duration) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		s.Recent = kept(p)
		if scrapes {
			flags.Replace(p.Flags, "compactor.min-part-segments", &s.MinPartSegments, segmentsOfScrapes)
			flags.Replace(p.Flags, "compactor.part-bytes", &s.PartBytes, bytesOfScrapes)
		}
		c, err := newStage(s, p)
		if err != nil {
			return nil, err
		}
		// At the end the running cycle is cancelled; none of its uncommitted work is visible.
		return process.InBackground(p, "compaction", func(ctx context.Context) {
			// The stage logs its errors. The process continues after one: the source objects are
			// still live, and the next cycle plans anew.
			process.Repeat(ctx, interval, func() { _, _ = c.Cycle(ctx) })
		}), nil
	}
}

func newStage(s Settings, p process.Parts) (*compact.Stage, error) {
	c, err := compact.New(s.Stage(), p.Store, p.Registry, p.Logger, p.Now)
	if err != nil {
		return nil, fmt.Errorf("start compaction: %w", err)
	}
	return c, nil
}
