package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/importapp"
)

type importCmd struct {
	TSDB importTSDBCmd `cmd:"" name:"tsdb" help:"Import the blocks of a Prometheus, of Thanos or of Mimir. May be killed and repeated."`
}

type importTSDBCmd struct {
	importapp.TSDB

	Import importapp.Settings `embed:""`
}

// Run imports and prints what that did, also when it failed midway.
func (c *importTSDBCmd) Run(ctx context.Context, io flags.Streams) error {
	p := newPace(io, "samples")
	defer p.end()
	o, err := importapp.Blocks(ctx, c.Import, c.TSDB, time.Now, p.see)
	p.end()
	if o == nil {
		return err
	}
	if _, perr := fmt.Fprint(io.Out, o.Text()); perr != nil {
		return errors.Join(err, fmt.Errorf("print result: %w", perr))
	}
	return err
}

// every is how often a pace prints a line where there is no terminal.
const every = 10 * time.Second

// pace shows how far work is, how fast it is, and how long it will take: as a bar on a
// terminal, otherwise as lines.
type pace struct {
	io   flags.Streams
	bar  *bar
	unit string // of the work

	mu           sync.Mutex
	begin, drawn time.Time
}

func newPace(io flags.Streams, unit string) *pace {
	now := time.Now()
	return &pace{io: io, bar: newBar(io.Err), unit: unit, begin: now, drawn: now}
}

// see is told that done of about total units are done.
func (p *pace) see(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, wait := time.Now(), every
	if p.bar != nil {
		wait = redraw
	}
	if now.Sub(p.drawn) < wait {
		return
	}
	p.drawn = now
	text := paceText(p.unit, done, total, now.Sub(p.begin))
	if p.bar != nil {
		p.bar.show(done, total, text)
		return
	}
	_, _ = fmt.Fprintln(p.io.Err, text) // nobody needs the progress of work if its error output is gone
}

// paceText describes the progress after some time.
func paceText(unit string, done, total int64, took time.Duration) string {
	text := fmt.Sprintf("%s of about %s %s, %s", human.Count(done), human.Count(total), unit, human.PerSecond(done, took))
	if done > 0 && total > done {
		left := time.Duration(float64(took) * float64(total-done) / float64(done))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}

// end removes the bar.
func (p *pace) end() {
	if p.bar != nil {
		p.bar.show(0, 0, "")
	}
}
