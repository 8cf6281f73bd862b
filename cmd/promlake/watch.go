package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/compact/plan"
)

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
