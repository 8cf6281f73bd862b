package memory

import "context"

// Work is work of a process that can be ended, such as a query. Methods of a nil *Work do nothing.
type Work struct {
	budget *Budget
	cancel context.CancelCauseFunc
	number uint64 // larger for later works

	// guarded by the budget's mu
	bytes   int64        // acquired
	outside func() int64 // bytes that it holds beside them; nil: none
	over    bool         // End was called
	ended   bool         // by Watch
}

type workKey struct{}

// Of returns the work of a context, or nil.
func Of(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	return w
}

// Start registers work and returns its context, unless the process is above its limit. When Watch
// ends the work, the context's cause is an *Error. The caller must call the work's End.
func (b *Budget) Start(ctx context.Context) (context.Context, *Work, error) {
	if b == nil {
		return ctx, nil, nil
	}
	if err := b.TryAcquire(0); err != nil {
		return ctx, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Work{budget: b, cancel: cancel}
	b.mu.Lock()
	b.started++
	w.number = b.started
	b.works[w] = struct{}{}
	watched := b.watched
	b.mu.Unlock()
	if !watched {
		b.wakeWatch()
	}
	return context.WithValue(ctx, workKey{}, w), w, nil
}

// Charge acquires n bytes for the work until its end, or returns an *Error. After the end it has no
// effect.
func (w *Work) Charge(n int64) error {
	if w == nil || n <= 0 {
		return nil
	}
	b := w.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.over {
		return nil
	}
	if err := b.take(n); err != nil {
		b.refuse()
		return err
	}
	w.bytes += n
	return nil
}

// Holds makes Watch count what outside returns as bytes of the work, beside those that it acquired.
// nil ends this: outside is not called once Holds(nil) has returned.
func (w *Work) Holds(outside func() int64) {
	if w == nil {
		return
	}
	w.budget.mu.Lock()
	defer w.budget.mu.Unlock()
	w.outside = outside
}

// Refused returns the error of an allocation outside of the budget that the process had no room for,
// and counts it. It is nil for a nil work.
func (w *Work) Refused() error {
	if w == nil {
		return nil
	}
	b := w.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.measure()
	b.refuse()
	return &Error{Limit: b.limit, Needed: max(b.limit+1, b.measured+b.limit/reserveShare)}
}

// Bytes returns the bytes of the work.
func (w *Work) Bytes() int64 {
	if w == nil {
		return 0
	}
	w.budget.mu.Lock()
	defer w.budget.mu.Unlock()
	return w.held()
}

// held returns the bytes of the work. The caller holds the budget's mu.
func (w *Work) held() int64 {
	if w.outside == nil {
		return w.bytes
	}
	return w.bytes + w.outside()
}

// End ends the work and releases its bytes. Further calls have no effect.
func (w *Work) End() {
	if w == nil {
		return
	}
	w.cancel(nil)
	b := w.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	delete(b.works, w)
	if w.ended {
		b.ended--
	}
	b.give(w.bytes)
	w.bytes = 0
}
