package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/query/request"
)

// bar is a progress line at the bottom of a terminal. All other output to the terminal is written
// through it, so that this output scrolls above the line. It is safe for concurrent use.
type bar struct {
	mu    sync.Mutex
	out   io.Writer
	width int // columns of the terminal
	line  string
}

// newBar returns a bar on w, or nil if w is no terminal.
func newBar(w io.Writer) *bar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return &bar{out: w, width: width}
}

// eraseLine returns to the beginning of the line and erases it (ECMA-48).
const eraseLine = "\r\x1b[K"

// Write prints above the line. It implements io.Writer.
func (b *bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line == "" {
		return b.out.Write(p)
	}
	if _, err := io.WriteString(b.out, eraseLine); err != nil {
		return 0, err
	}
	n, err := b.out.Write(p)
	if err == nil {
		_, err = io.WriteString(b.out, b.line)
	}
	return n, err
}

// show replaces the line with the share of the work that is done, and text. An empty text erases
// the line.
func (b *bar) show(done, total int64, text string) {
	if text != "" {
		text = gauge(done, total) + " " + text
	}
	b.draw(text)
}

// draw replaces the line. An empty one is erased.
func (b *bar) draw(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := []rune(text)
	b.line = string(line[:min(len(line), b.width-1)])
	// A terminal that is gone needs no progress.
	_, _ = io.WriteString(b.out, eraseLine+b.line)
}

// gauge draws done of total, which may be an estimate that is too low.
func gauge(done, total int64) string {
	const width = 24
	part := 0.0
	if total > 0 {
		part = min(float64(done)/float64(total), 1)
	}
	full := int(width * part)
	return fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("█", full), strings.Repeat("░", width-full), 100*part)
}

// redraw is how often the bar is drawn at most.
const redraw = 100 * time.Millisecond

// watch turns what jobs report into a bar.
type watch struct {
	bar   *bar
	begin time.Time

	mu    sync.Mutex
	jobs  map[string]*progress
	drawn time.Time
}

// progress is how far one job is, in samples.
type progress struct{ done, total int64 }

// see implements compact.Progress.
func (w *watch) see(tenant string, job plan.Job, done, total int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("%s: %s", tenant, job)
	p := w.jobs[name]
	if p == nil {
		p = &progress{}
		w.jobs[name] = p
	}
	p.done, p.total = done, max(done, total)
	if now := time.Now(); now.Sub(w.drawn) >= redraw {
		w.drawn = now
		var all progress
		for _, p := range w.jobs {
			all.done, all.total = all.done+p.done, all.total+p.total
		}
		w.bar.show(all.done, all.total, fmt.Sprintf("%s samples, %s, %s", human.Count(all.done), human.PerSecond(all.done, now.Sub(w.begin)), name))
	}
}

// busyAfter is how long a statement runs before the shell shows that it does.
const busyAfter = time.Second

// busy shows how far the statement of the context that it returns is, until stop.
func (b *bar) busy(ctx context.Context) (running context.Context, stop func()) {
	var p request.Progress
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		begun, tick, shown := time.Now(), time.NewTicker(redraw), ""
		defer tick.Stop()
		for {
			select {
			case <-done:
				if shown != "" {
					b.draw("")
				}
				return
			case now := <-tick.C:
				if line := busyLine(now.Sub(begun), p.Share); line != shown {
					b.draw(line)
					shown = line
				}
			}
		}
	}()
	return request.WithProgress(ctx, &p), func() {
		close(done)
		<-ended
	}
}

// busyLine is the line of a statement that has been running for some time: none at first, and
// without a gauge if it is not known how far the statement is, as it is with a server.
func busyLine(ran time.Duration, share func() (part float64, ok bool)) string {
	if ran < busyAfter {
		return ""
	}
	seconds := int(ran.Seconds())
	part, ok := share()
	if !ok {
		return fmt.Sprintf("running for %d s; Ctrl-C cancels", seconds)
	}
	const whole = 1000
	return fmt.Sprintf("%s read, %d s; Ctrl-C cancels", gauge(int64(part*whole), whole), seconds)
}
