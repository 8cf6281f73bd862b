package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// maxSlices bounds the parts into which the series of a window are divided.
const maxSlices = 4096

// MemoryError reports a window whose series do not fit into the memory.
type MemoryError struct {
	Unit  string
	Limit int64 // bytes
}

// Error implements error.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("window %s: its series do not fit into %d bytes, the share of --memory-limit, in %d slices: raise --memory-limit", e.Unit, e.Limit, maxSlices)
}

// Report counts what an import did.
type Report struct {
	Blocks  int64
	Present int64 // blocks that another import had committed since the plan was made
	Series  int64 // of all blocks
	Samples int64
	Bytes   int64
	Equal   int64 // samples that were left out, because a later input has one of the same series and time
}

// Progress is told how many samples are read, about, of how many.
type Progress func(done, total int64)

// importer is one call of Run.
type importer struct {
	set      Settings
	store    objstore.Store
	tenant   string
	plan     *Plan
	ledger   *ledger
	progress Progress
	total    int64
	done     atomic.Int64
	hasST    atomic.Bool

	mu     sync.Mutex
	report Report
	inputs []held
}

// held is an input that is open while units need it.
type held struct {
	users  int // units of the plan that are not done
	opened Opened
}

// Run does the units of a plan. It may end or be killed at any time and be repeated with a new
// plan. Other processes may write, compact and import meanwhile. progress may be nil. The report is
// valid with an error too.
func Run(ctx context.Context, set Settings, store objstore.Store, tenant string, plan Plan, progress Progress) (Report, error) {
	switch {
	case set.Level < key.L2h || set.Level > key.L24h:
		return Report{}, fmt.Errorf("import: level %s, want 2h, 12h or 24h", set.Level)
	case set.Concurrency < 1 || set.MemoryBytes < 1 || set.MaxSamples < 1 || set.Retention < 0:
		return Report{}, fmt.Errorf("import: %d units at once with %d bytes and %d samples each, want at least 1", set.Concurrency, set.MemoryBytes, set.MaxSamples)
	}
	im := &importer{set: set, store: store, tenant: tenant, plan: &plan, progress: progress, total: plan.Samples(), inputs: make([]held, len(plan.Inputs))}
	im.ledger = newLedger(store, tenant, plan.past, set.Restore)
	if err := im.ledger.settle(ctx); err != nil {
		return Report{}, err
	}
	for _, u := range plan.Units {
		for _, i := range u.Inputs {
			im.inputs[i].users++
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(set.Concurrency)
	for _, u := range plan.Units {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			err := im.do(gctx, &u)
			if err != nil {
				err = fmt.Errorf("import window %s: %w", u, err)
			}
			return errors.Join(err, im.release(&u))
		})
	}
	err := g.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		_, err = catalog.Commit(ctx, store, tenant, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			return m.Recorded(im.ledger.written()), nil
		})
	}
	for i := range im.inputs { // of units that were not begun
		if o := im.inputs[i].opened; o != nil {
			err = errors.Join(err, o.Close())
		}
	}
	return im.report, err
}

// do does a unit, in halves if it is too large.
func (im *importer) do(ctx context.Context, u *Unit) error {
	before := im.done.Load()
	err := errTooLarge
	if u.Samples <= im.set.MaxSamples || u.Slice.Of >= maxSlices {
		for err = errAgain; errors.Is(err, errAgain); {
			err = im.unit(ctx, u)
		}
	}
	if !errors.Is(err, errTooLarge) {
		return err
	}
	if u.Slice.Of >= maxSlices {
		return &MemoryError{Unit: u.String(), Limit: im.share()}
	}
	if im.set.Concurrency == 1 {
		im.done.Store(before)
	}
	for i := range 2 {
		half := *u
		half.Samples /= 2
		half.Slice = catalog.Slice{Index: 2*u.Slice.Index + i, Of: 2 * max(1, u.Slice.Of)}
		if err := im.do(ctx, &half); err != nil {
			return err
		}
	}
	return nil
}

// share is the memory of one unit.
func (im *importer) share() int64 { return im.set.MemoryBytes / int64(im.set.Concurrency) }

// open returns an input, opened.
func (im *importer) open(ctx context.Context, i int) (Opened, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	h := &im.inputs[i]
	if h.opened == nil {
		o, err := im.plan.Inputs[i].Open(ctx)
		if err != nil {
			return nil, err
		}
		h.opened = o
	}
	return h.opened, nil
}

// release closes the inputs that no other unit needs.
func (im *importer) release(u *Unit) (err error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	for _, i := range u.Inputs {
		h := &im.inputs[i]
		if h.users--; h.users == 0 && h.opened != nil {
			err = errors.Join(err, h.opened.Close())
			h.opened = nil
		}
	}
	return err
}

// read counts samples that a unit has read.
func (im *importer) read(n int64) {
	done := im.done.Add(n)
	if im.progress != nil {
		im.progress(done, max(done, im.total))
	}
}

// Settings configure an import.
type Settings struct {
	Level       key.Level // of the largest blocks, at least 2h
	MemoryBytes int64     // for the series of the units under way
	Concurrency int       // units that are written at once
	TempDir     string    // for the files of a block before their upload; "" is the system's
	Rollups     bool      // beside 24h blocks
	Retention   time.Duration
	Restore     bool          // import again what was imported into windows with quarantined blocks
	WindowDelay time.Duration // after the end of a window until it becomes a block
	// MaxSamples bounds the samples of one unit, about, so that it is done long before its commit
	// would be refused for its age.
	MaxSamples int64
}

var (
	// errTooLarge reports a unit that must be divided by series.
	errTooLarge = errors.New("its series do not fit into the memory")
	// errAgain reports a unit that must be repeated: its block must have start timestamps, or
	// another import has done a part of it.
	errAgain = errors.New("the block must be written anew")
)
