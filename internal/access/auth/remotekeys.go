package auth

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// remoteAge is the age from which a remote document is read again.
	remoteAge = 5 * time.Minute
	// remotePause is the minimum time between two reads, whether because of unknown tokens,
	// unknown principals or failures.
	remotePause = 10 * time.Second
	// firstPause is the minimum time between two reads while no document could be read.
	firstPause = time.Second
	// remoteTimeout bounds one read.
	remoteTimeout = 3 * time.Second
)

// remoteKeys reads the document from a source where each read is a request. It is read for the
// first request, and again when it is older than remoteAge or does not contain a token or
// principal. Requests run the reads, because a Lambda function has no processor time between
// requests.
type remoteKeys struct {
	from   Secret
	now    func() time.Time
	logger *slog.Logger

	turn  chan struct{} // holds one value while a request reads
	known atomic.Pointer[knowledge]
}

// knowledge is the result of the last reads. It is immutable.
type knowledge struct {
	grants map[string]*grant // nil: no read succeeded so far
	err    error             // of the last read
	read   time.Time         // when the document was read
	tried  time.Time         // when a read was last tried
}

func newRemoteKeys(from Secret, logger *slog.Logger, now func() time.Time) *remoteKeys {
	k := &remoteKeys{from: from, now: now, logger: logger, turn: make(chan struct{}, 1)}
	k.known.Store(&knowledge{})
	return k
}

func (k *remoteKeys) all(ctx context.Context, wanted []string) (map[string]*grant, error) {
	known := k.known.Load()
	// a request with a known token does not wait for the read of another
	age, wait := remoteAge, known.grants == nil
	if wanted != nil && first(known.grants, wanted) == nil {
		age, wait = 0, true
	}
	if err := k.refresh(ctx, age, wait); err != nil {
		return nil, err
	}
	if known = k.known.Load(); known.grants == nil {
		return nil, fmt.Errorf("%w: %w", errUnavailable, known.err)
	}
	return known.grants, nil
}

// refresh reads the document if it is older than age and due allows a read. With wait, it waits for
// the read of another request.
func (k *remoteKeys) refresh(ctx context.Context, age time.Duration, wait bool) error {
	if !k.due(age) {
		return nil
	}
	select {
	case k.turn <- struct{}{}:
	default:
		if !wait {
			return nil
		}
		select {
		case k.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errUnavailable, ctx.Err())
		}
	}
	defer func() { <-k.turn }()
	if k.due(age) { // the request before may have read it
		k.reload(ctx)
	}
	return nil
}

// due reports whether the document is older than age and may be read again now.
func (k *remoteKeys) due(age time.Duration) bool {
	known, now := k.known.Load(), k.wall()
	switch {
	case known.tried.IsZero():
		return true
	case known.grants == nil:
		return now.Sub(known.tried) >= firstPause
	default:
		return now.Sub(known.tried) >= remotePause && now.Sub(known.read) >= age
	}
}

// wall returns the time without its monotonic part, which may stop while a function is frozen.
func (k *remoteKeys) wall() time.Time { return k.now().Round(0) }

// reload reads the document. The caller holds turn. The read continues if the caller's client goes
// away, because other requests may wait for it.
func (k *remoteKeys) reload(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remoteTimeout)
	defer cancel()
	old := k.known.Load()
	grants, err := read(ctx, k.from)
	now := k.wall()
	if err != nil {
		k.logger.Error("document of tokens cannot be read", "err", err, "last_read", old.read)
		k.known.Store(&knowledge{grants: old.grants, err: err, read: old.read, tried: now})
		return
	}
	k.known.Store(&knowledge{grants: grants, read: now, tried: now})
}
