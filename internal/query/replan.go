package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore"
)

// GoneError reports that objects of a snapshot were gone, and objects of the snapshot taken next as well. The store deletes what was
// compacted away only long after, so this is a store that loses objects, or a compactor whose deletion delay is shorter than a query.
type GoneError struct{ Err error }

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("objects vanished twice during a read; is the compactor's deletion delay longer than the longest query? %v", e.Err)
}

// Unwrap returns what the store said.
func (e *GoneError) Unwrap() error { return e.Err }

// TooOldError reports that the state that a query asks for (as_of) cannot be read any more. Its text names the oldest that can.
type TooOldError struct{ Err error }

// Error implements error.
func (e *TooOldError) Error() string { return e.Err.Error() }

// Unwrap returns the catalog's error.
func (e *TooOldError) Unwrap() error { return e.Err }

// QueryLimit tells the HTTP API that the query asks for too much (422), which is no failure.
func (*TooOldError) QueryLimit() bool { return true }

// tooOld makes a TooOldError of the catalog's error, and leaves others as they are.
func tooOld(err error) error {
	if errors.Is(err, catalog.ErrTooOld) {
		return &TooOldError{err}
	}
	return err
}

// replanning calls fn with a snapshot, and once more with a fresh one if an object was gone: compaction has replaced it, and what did is in the
// fresh one. The annotations name the damaged objects that fn was at last called without.
func (s *Stage) replanning(ctx context.Context, take func(ctx context.Context, fresh bool) (catalog.Snapshot, error), fn func(catalog.Snapshot) error) (annotations.Annotations, error) {
	left := &leftOut{}
	for _, fresh := range []bool{false, true} {
		snap, err := take(ctx, fresh)
		if err != nil {
			return left.notes, err
		}
		err = left.reading(ctx, s, snap, fn)
		switch {
		case !errors.Is(err, objstore.ErrNotFound):
			return left.notes, err
		case fresh:
			return left.notes, &GoneError{err}
		}
		s.snapshots.forget()
		s.metrics.Replans.Inc()
		s.logger.Debug("replan a read whose objects are gone", "tenant", snap.Tenant, "err", err)
	}
	return left.notes, nil
}
