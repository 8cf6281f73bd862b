package auth

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/promlake/promlake/internal/secret"
)

const (
	// remoteAge is how long a remote document is taken for current.
	remoteAge = 5 * time.Minute
	// remotePause is the least time between two reads of it, whatever asks for them: unknown tokens
	// or failures.
	remotePause = 10 * time.Second
	// firstPause is the least time between two reads while there is no document at all.
	firstPause = time.Second
	// remoteTimeout bounds one read of it.
	remoteTimeout = 3 * time.Second
)

// remoteKeys are those of a place that each read costs a request. It is read when the first token
// is asked for, and again when what is known is older than remoteAge, or does not know a token.
// Requests do that themselves: a function has no time of its own between them.
type remoteKeys struct {
	from   secret.Source
	now    func() time.Time
	logger *slog.Logger

	turn  chan struct{} // holds one value while somebody reads
	known atomic.Pointer[knowledge]
}

// knowledge is what the last reads brought. It is immutable.
type knowledge struct {
	grants map[Sum]*grant // nil: none succeeded yet
	err    error          // of the last read
	read   time.Time      // when the document was read
	tried  time.Time      // when a read was last tried
}

func newRemoteKeys(from secret.Source, logger *slog.Logger, now func() time.Time) *remoteKeys {
	k := &remoteKeys{from: from, now: now, logger: logger, turn: make(chan struct{}, 1)}
	k.known.Store(&knowledge{})
	return k
}

func (k *remoteKeys) find(ctx context.Context, sum Sum) (*grant, error) {
	known := k.known.Load()
	age, wait := remoteAge, false // who has a token that was good does not wait for others
	if known.grants[sum] == nil {
		age, wait = 0, true
	}
	if err := k.refresh(ctx, age, wait); err != nil {
		return nil, err
	}
	known = k.known.Load()
	if known.grants == nil {
		return nil, fmt.Errorf("%w: %w", errUnavailable, known.err)
	}
	return known.grants[sum], nil
}

// refresh reads the document if what is known is older than age, and a read is due. With wait, it
// waits for the read of another request.
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
	if k.due(age) { // the one before may have read it
		k.reload(ctx)
	}
	return nil
}

// due reports whether a document older than age may be read again now.
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

// wall is the time without its monotonic part, which may stand still while a function is frozen.
func (k *remoteKeys) wall() time.Time { return k.now().Round(0) }

// reload reads the document, for the caller who has the turn. A client that goes away does not end
// it: others may wait for it.
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
