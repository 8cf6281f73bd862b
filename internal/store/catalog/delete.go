package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// QueueHorizon is how long after a deletion a message may come from the queue that was sent before
// the deletion: Amazon SQS keeps a message for 14 days, and as long again when a dead letter was
// moved back.
const QueueHorizon = 30 * 24 * time.Hour

// Deletion is a request to delete the samples in [MinT, MaxT] (ms, inclusive) of the series that
// all matchers of one of the sets match.
type Deletion struct {
	Sets       [][]Matcher
	MinT, MaxT int64
	// Queued means that writes may be on a queue before the store. Delete then takes up to half a
	// minute.
	Queued bool
}

// MaxDeleteWait is how long Delete waits at most for the queue's period to end, if the store
// answers.
const MaxDeleteWait = 35 * time.Second

const (
	// clockAgreement is how much the clocks of the queue and of the store may differ.
	clockAgreement = 2 * time.Second
	// pollClock is the time between two reads of the store's clock.
	pollClock = time.Second
)

// Delete commits a deletion. When it returns, samples that were acknowledged before the call are
// deleted. Samples that are sent after it returned stay; samples that are written meanwhile may be
// deleted or stay. This depends on no machine's clock:
//
//  1. It reads the manifest, and covers its blocks.
//  2. It lists the segments of the windows. Listings are strong, so these are all that were
//     acknowledged before, except those that are in a block of the manifest. They become Sealed.
//  3. If there is a queue, the tombstones cover what was sent until the end of a period of the
//     queue, which is after the listing.
//  4. It swaps the manifest, if it is still what was read. Otherwise it begins again: a newer block
//     may hold what was written after a segment that the listing does not have, and to delete only
//     the newer of two values would bring the older one back.
//  5. If there is a queue, it waits until the period is over, by the store's clock.
func Delete(ctx context.Context, store Store, tenant string, d Deletion) (Manifest, error) {
	m, err := Commit(ctx, store, tenant, func(m Manifest, now time.Time) (Manifest, error) {
		listed, through, err := d.covered(ctx, store, tenant)
		for i := 0; i < len(d.Sets) && err == nil; i++ {
			m, _, err = m.Delete(now, Tombstone{Matchers: d.Sets[i], MinT: d.MinT, MaxT: d.MaxT, QueuedThrough: through}, listed)
		}
		return m, err
	})
	if n := len(m.Tombstones); err == nil && d.Queued && n > 0 {
		err = waitFor(ctx, store, time.UnixMilli(m.Tombstones[n-1].QueuedThrough).Add(clockAgreement))
	}
	return m, err
}

// covered returns the segments of the deletion's windows, and the end of the queue's period.
func (d *Deletion) covered(ctx context.Context, store Store, tenant string) (listed []SegmentID, through int64, err error) {
	l, err := List(ctx, store, tenant, d.MinT, d.MaxT)
	if err != nil {
		return nil, 0, err
	}
	for _, s := range l.snap.Segments {
		listed = append(listed, s.SegmentID())
	}
	if !d.Queued {
		return listed, 0, nil
	}
	now, err := store.Now(ctx)
	latest := now.Add(objstore.ClockLag + clockAgreement).UnixMilli()
	return listed, latest - latest%key.QueueMillis + key.QueueMillis - 1, err
}

// waitFor returns when the store's clock has passed the time.
func waitFor(ctx context.Context, store Store, end time.Time) error {
	t := time.NewTicker(pollClock)
	defer t.Stop()
	for {
		now, err := store.Now(ctx)
		if err == nil && now.After(end) {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%w, until %s: %w", ErrUnsettled, end.UTC().Format(time.RFC3339), errors.Join(ctx.Err(), err))
		}
	}
}

// Delete adds the tombstone t, whose identifier it chooses, and seals the listed segments, if they
// are still live and their windows overlap. listed are all segments of these windows that were
// acknowledged before the deletion began.
func (m Manifest) Delete(now time.Time, t Tombstone, listed []SegmentID) (Manifest, Tombstone, error) {
	t.Matchers = slices.Clone(t.Matchers)
	err := m.admits(t)
	if err != nil {
		return Manifest{}, Tombstone{}, err
	}
	if t.ID, err = m.tombstoneID(now); err != nil {
		return Manifest{}, Tombstone{}, err
	}
	if n := len(m.Tombstones); n > 0 {
		t.QueuedThrough = max(t.QueuedThrough, m.Tombstones[n-1].QueuedThrough)
	}
	if err := t.validate(); err != nil {
		return Manifest{}, Tombstone{}, err
	}
	next := m.clone()
	for _, s := range listed {
		if _, known := m.sealed(s); !known && !m.consumed(s) && t.Overlaps(int64(s.Window), s.Window.End()-1) {
			next.Sealed = append(next.Sealed, Sealed{s, t.ID})
		}
	}
	if len(next.Sealed) > MaxSealed {
		return Manifest{}, Tombstone{}, &LimitError{"sealed", len(next.Sealed), MaxSealed, ErrFull}
	}
	next.Tombstones = append(next.Tombstones, t)
	next.LastTombstone = t.ID
	next.sort()
	return next, t, nil
}

// tombstoneID returns the identifier of the next tombstone, which is larger than all before it: a
// millisecond, eight bytes 0xff, and a number, so that many deletions can share a millisecond.
func (m Manifest) tombstoneID(now time.Time) (id ulid.ULID, err error) {
	const number = 14 // its first byte
	last := m.LastTombstone.Time()
	ms, n := max(uint64(m.at(now)), last), uint16(0)
	if ms == last {
		if n = binary.BigEndian.Uint16(m.LastTombstone[number:]) + 1; n == 0 {
			ms++
		}
	}
	if err := id.SetTime(ms); err != nil {
		return id, fmt.Errorf("delete at %d ms: %w: %w", ms, ErrInvalid, err)
	}
	for i := 6; i < number; i++ {
		id[i] = 0xff
	}
	binary.BigEndian.PutUint16(id[number:], n)
	return id, nil
}

// DropTombstones removes tombstones that have nothing left to delete, now or later. It ignores
// unknown ones. It conflicts if one covers a live object that may have samples of its times, or if
// the queue may still deliver messages that it covers.
func (m Manifest) DropTombstones(now time.Time, ids []ulid.ULID) (Manifest, error) {
	next := m.clone()
	next.Tombstones = slices.DeleteFunc(next.Tombstones, func(t Tombstone) bool { return slices.Contains(ids, t.ID) })
	for _, t := range m.Tombstones {
		if slices.Contains(ids, t.ID) && m.Pending(now, t) {
			return Manifest{}, fmt.Errorf("drop tombstone %s: it has something left to delete: %w", t.ID, ErrConflict)
		}
	}
	return next, nil
}

// Pending reports whether t may have samples left to delete, in a live object, in a finished slice,
// or in messages of the queue.
func (m Manifest) Pending(now time.Time, t Tombstone) bool {
	if t.QueuedThrough > 0 && now.UnixMilli() <= t.QueuedThrough+QueueHorizon.Milliseconds() {
		return true
	}
	// Segments that only Before covers are not sealed. None is left that long, for compaction takes
	// all segments.
	if t.Before != (ulid.ULID{}) && now.Before(ulid.Time(t.ID.Time()).Add(QueueHorizon)) {
		return true
	}
	stale := func(b Block) bool { return t.Covers(b.DeletesThrough) && t.Overlaps(b.MinT, b.MaxT) }
	if slices.ContainsFunc(m.Blocks, stale) {
		return true
	}
	for _, sp := range m.Splits {
		if slices.ContainsFunc(sp.Done, stale) {
			return true
		}
	}
	return slices.ContainsFunc(m.Sealed, func(s Sealed) bool {
		return s.By.Compare(t.ID) <= 0 && t.Overlaps(int64(s.Window), s.Window.End()-1)
	})
}
