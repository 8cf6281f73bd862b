package cost

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/internal/store/objstore/instrument"
	"github.com/promlake/promlake/internal/store/queue"
)

// midnight is when the samples begin.
var midnight = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// settled is how long after a window's end all of it has become a block.
const settled = 15 * time.Minute

// lake is a store with the stages over it. They share one clock, which moves with the samples.
type lake struct {
	set     *Flags
	clock   time.Time
	ingest  *part
	compact *part
	writer  writer
	merger  *compact.Stage
	took    compaction
}

// part is one stage's view of the store, with its own counters.
type part struct {
	reg   *prometheus.Registry
	store objstore.Store
}

func newPart(store objstore.Store) *part {
	reg := prometheus.NewRegistry()
	return &part{reg: reg, store: instrument.New(store, reg, nil)}
}

func newLake(f *Flags) (*lake, error) {
	store, err := filestore.New(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	l := &lake{set: f, clock: midnight}
	now := func() time.Time { return l.clock }
	own := newTimed(store, now)
	l.ingest, l.compact = newPart(own), newPart(own)
	quiet := slog.New(slog.DiscardHandler)
	if l.merger, err = compact.New(compact.Settings{}, l.compact.store, l.compact.reg, quiet, now); err != nil {
		return nil, fmt.Errorf("make compaction stage: %w", err)
	}
	if l.writer, err = newWriter(f, l.ingest, quiet, now); err != nil {
		return nil, err
	}
	return l, nil
}

// tick plans and compacts, as the schedule makes functions do once a minute.
func (l *lake) tick(ctx context.Context) error {
	r, err := l.merger.Tick(ctx)
	if err != nil {
		return fmt.Errorf("compact at %s: %w", l.clock.Format(time.TimeOnly), err)
	}
	l.took.add(&r)
	return nil
}

// newStage makes an ingest stage in which no request waits for another one.
func newStage(p *part, log *slog.Logger, now func() time.Time, q queue.Sender, change func(*ingest.Settings)) (*ingest.Stage, error) {
	set := ingest.DefaultSettings()
	set.FlushInterval = 1
	change(&set)
	s, err := ingest.New(set, p.store, p.reg, log, now, ingest.To(q))
	if err != nil {
		return nil, fmt.Errorf("make ingest stage: %w", err)
	}
	return s, nil
}

// counters adds up a counter's series by the value of a label, "" for all of them.
func (p *part) counters(name, label string) (map[string]float64, error) {
	families, err := p.reg.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					key = l.GetValue()
				}
			}
			out[key] += m.GetCounter().GetValue()
		}
	}
	return out, nil
}
