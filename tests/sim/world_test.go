package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

const tenant = "t"

// dawn is the start of every world: an hour into a day.
var dawn = time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)

// longSleep exceeds any pause of a process between two operations.
const longSleep = 2100 * time.Millisecond

// world is one schedule.
type world struct {
	set   settings
	rng   *rand.Rand
	mem   *memstore.Store
	tools *tools

	mu      sync.Mutex
	now     time.Time // the store's clock; those of the processes are wrong
	procs   []*proc   // not done
	started int
	pending []*op
	steps   int
	changed bool // since the last check
	changes int  // puts and deletions that took effect
	truth   *truth
	jobs    *jobs
	writes  *writeQueue
	decoded *cache
	kept    map[string]bool // objects that a reader has read, and a reader with a cache need not fetch
	known   catalog.Version // the manifest that the omniscient reader has decoded
	trace   []event
	failure error
	tally   tally
}

// op is a store operation that waits for its turn.
type op struct {
	p     *proc
	kind  memstore.Op
	key   string
	grant chan verdict
}

func (o *op) String() string {
	return fmt.Sprintf("%s %s %s", o.p.name, o.kind, strings.TrimPrefix(o.key, "v1/"+tenant+"/"))
}

// verdict is the outcome of an operation.
type verdict struct {
	before, after bool // it fails before or after its effect
	dead          bool // and so does its process
	// it takes effect although its context has ended, because the process was suspended during it
	late bool
}

var (
	errFault = errors.New("injected fault")
	errDead  = errors.New("the process is dead")
)

func newWorld(seed uint64, set settings, shared *tools) *world {
	w := &world{set: set, tools: shared, rng: rand.New(rand.NewPCG(seed, 17)), now: dawn, truth: newTruth(), decoded: newCache(), kept: map[string]bool{}}
	w.jobs, w.writes = &jobs{w: w}, newWriteQueue(w)
	w.mem = memstore.New(memstore.Settings{
		Now:        func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
		Immutable:  func(k string) bool { return !strings.HasSuffix(k, "/manifest.json") },
		Resolution: set.resolution,
	})
	return w
}

// run plays the schedule and returns the first error.
func (w *world) run() error {
	for range w.set.steps {
		if w.failure != nil {
			break
		}
		w.step()
	}
	w.end()
	if w.failure == nil && w.set.quiesce {
		w.quiesce()
		w.end()
	}
	w.tally.steps = w.steps
	return w.failure
}

func (w *world) step() {
	w.settle()
	w.populate()
	w.settle()
	if w.rng.IntN(6) == 0 {
		w.advance(w.jump())
	}
	o := w.pick()
	if o == nil {
		return
	}
	v := w.judge(o)
	w.note(o, v)
	if v.dead {
		o.p.kill()
	} else if !w.set.calm {
		w.suspend(o.p)
	}
	w.steps++
	o.grant <- v
	w.settle()
	w.check()
}

// suspend sometimes lets a process sleep after its operation.
func (w *world) suspend(p *proc) {
	longest := time.Duration(0)
	switch n := w.rng.IntN(80); {
	case n < 2:
		longest = 2 * time.Hour
	case n < 16 && p.drowsy:
		longest = w.set.nap
	}
	if longest > 0 {
		p.wakes = w.now.Add(time.Duration(w.rng.Int64N(int64(longest))))
	}
}

// settle lets processes run until all wait for their turn or are done.
func (w *world) settle() {
	synctest.Wait()
	for i := 0; w.sleepers(); i++ {
		if i > 1000 {
			panic("a process waits for something else than its turn")
		}
		w.advance(longSleep)
		synctest.Wait()
	}
	for i, o := range w.pending { // of processes that died
		if o.p.dead {
			w.pending = slices.Delete(w.pending, i, i+1)
			o.grant <- verdict{before: true, dead: true}
			w.settle()
			return
		}
	}
}

// sleepers reports whether a process waits for time to pass: it is not done and does not wait for
// its turn.
func (w *world) sleepers() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.procs = slices.DeleteFunc(w.procs, func(p *proc) bool { return p.done })
	for _, p := range w.procs {
		if !slices.ContainsFunc(w.pending, func(o *op) bool { return o.p == p }) {
			return true
		}
	}
	return false
}

// pick removes and returns one of the operations whose processes are awake; nil if there is none.
func (w *world) pick() *op {
	slices.SortFunc(w.pending, func(a, b *op) int {
		return cmp.Or(cmp.Compare(a.p.n, b.p.n), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
	})
	var awake []int
	for i, o := range w.pending {
		if !o.p.wakes.After(w.now) {
			awake = append(awake, i)
		}
	}
	if len(awake) == 0 {
		w.advance(time.Minute)
		return nil
	}
	i := awake[w.rng.IntN(len(awake))]
	o := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	return o
}

func (w *world) judge(o *op) (v verdict) {
	if w.set.calm {
		return verdict{}
	}
	v.late = w.rng.IntN(2) == 0
	switch w.rng.IntN(60) {
	case 0:
		v.before = true
	case 1, 2:
		v.after = true
	case 3:
		v.before, v.dead = true, true
	case 4:
		v.after, v.dead = true, true
	}
	return v
}

// jump returns the next advance of the clock: usually seconds, sometimes more than every delay.
func (w *world) jump() time.Duration {
	limit := []time.Duration{5 * time.Second, 5 * time.Second, 2 * time.Minute, 2 * time.Minute, 20 * time.Minute, 3 * time.Hour, 14 * time.Hour}
	n := w.rng.IntN(60)
	i := slices.IndexFunc([]int{20, 30, 42, 50, 56, 59, 60}, func(end int) bool { return n < end })
	return time.Duration(1 + w.rng.Int64N(int64(limit[i])))
}

// advance moves the clock. The time of the bubble, by which contexts end, advances too, but only
// until all contexts have ended.
func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
	time.Sleep(min(d, 20*time.Minute))
}

// event is a step of the trace.
type event struct {
	step int
	at   time.Time
	op   *op
	verdict
}

func (e event) String() string {
	return fmt.Sprintf("%4d %s %s%s", e.step, e.at.Format("02T15:04:05"), e.op, e.verdict)
}

func (w *world) note(o *op, v verdict) { w.trace = append(w.trace, event{w.steps, w.now, o, v}) }

// story returns the last steps of the trace, one a line.
func (w *world) story(steps int) string {
	var b strings.Builder
	for _, e := range w.trace[max(0, len(w.trace)-steps):] {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// fail records the first failure.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
	}
}

// end kills every process.
func (w *world) end() {
	for _, p := range w.procs {
		p.kill()
	}
	w.settle()
}

func (v verdict) String() string {
	switch {
	case v.before && v.dead:
		return ": dies before"
	case v.dead:
		return ": dies after"
	case v.before:
		return ": fails before"
	case v.after:
		return ": fails after"
	}
	return ""
}

// proc is one process.
type proc struct {
	w      *world
	n      int
	name   string
	rng    *rand.Rand
	skew   time.Duration
	ctx    context.Context
	cancel context.CancelFunc
	wakes  time.Time // until then it is suspended
	drowsy bool      // it is suspended often, but not for long
	dead   bool      // its operations have no effect any more
	done   bool

	listed, read int  // steps at which it last listed segments and read the manifest
	asked        bool // the store for its time
}

// wrong bounds how far the clock of a process is off.
const wrong = time.Hour

// spawn starts a process.
func (w *world) spawn(kind string, run func(*proc)) *proc {
	w.started++
	ctx, cancel := context.WithCancel(context.Background())
	p := &proc{
		w: w, n: w.started, name: fmt.Sprintf("%s-%d", kind, w.started), ctx: ctx, cancel: cancel,
		rng: rand.New(rand.NewPCG(w.rng.Uint64(), 5)), skew: time.Duration(w.rng.Int64N(int64(2*wrong))) - wrong,
	}
	w.mu.Lock()
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	go func() {
		defer func() {
			cancel()
			w.mu.Lock()
			p.done = true
			w.mu.Unlock()
		}()
		run(p)
	}()
	return p
}

func (p *proc) kill() {
	p.w.mu.Lock()
	p.dead = true
	p.w.mu.Unlock()
	p.cancel()
}

// clock returns the process's clock, which sometimes jumps back and forth.
func (p *proc) clock() time.Time {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.rng.IntN(8) == 0 {
		p.skew = time.Duration(p.rng.Int64N(int64(2*wrong))) - wrong
	}
	return p.w.now.Add(p.skew)
}
