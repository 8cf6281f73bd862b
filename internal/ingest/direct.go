package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
)

// digest is a hash (SHA-256) of a request's body as it was sent.
type digest = [sha256.Size]byte

// storeDirect makes one request durable, as segments whose identifier follows from the request: one that is sent again finds them there.
func (s *Stage) storeDirect(ctx context.Context, in *incoming) error {
	t, b := in.tenant, in.batch
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	begin := time.Now()
	// The time that the flush may take counts from the clock that the identifier is made by.
	id := contentID(s.now(), s.set.RetryTolerance, b.maxT, in.identity())
	segments, err := t.segments([]*batch{b}, func() ulid.ULID { return id })
	if err == nil {
		err = putAll(ctx, segments, t.putOnce)
	}
	s.met.flushed(tallyOf(b), err, time.Since(begin))
	if err != nil {
		e := notDurable(err)
		s.log.Error("write failed; the sender was told to try again", "reference", e.reference, "tenant", t.id, "samples", b.samples(), "err", err)
		return e
	}
	b.gen.stored.note(b.metadata)
	t.rotate()
	return nil
}

// bounded returns ctx with an end at the flush timeout, and when the stage gives up waiting.
func (s *Stage) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.set.FlushTimeout)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// putOnce is put where an object under the key holds the same samples.
func (t *tenantIngest) putOnce(ctx context.Context, k key.Segment, file []byte) error {
	err := t.put(ctx, k, file)
	if errors.Is(err, objstore.ErrPrecondition) {
		t.stage.met.existing.Inc()
		return nil
	}
	return err
}

// identity hashes all that decides which samples the request's segments hold: the body, whose it is, how it was read, and how much of it was
// valid when it was.
func (in *incoming) identity() digest {
	n := tallyOf(in.batch)
	b := make([]byte, 0, 256)
	b = append(b, in.body[:]...)
	for _, v := range []int{int(in.version), n.floats, n.hists, n.exemplars} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return sha256.Sum256(append(b, in.tenant.id...))
}

// senderAhead is how far the clock of a sender may be ahead of ours, so that its samples come from the future, without changing a request's
// identifier when it is sent again.
const senderAhead = 2 * time.Second

// contentID returns a request's identifier. Its time decides two things: a merge takes it for granted that no segment appears whose time
// is older than the settle delay, and of two segments the one with the later time counts. So the time is that of the newest sample (ms), less
// senderAhead, if this lies within the tolerance before now, which is the same whenever the request is sent again, and else now rounded down
// to a multiple of the tolerance, which mostly is. The other 80 bits are the beginning of the hash.
func contentID(now time.Time, tolerance time.Duration, newest int64, hash digest) ulid.ULID {
	at, step := now.UnixMilli(), tolerance.Milliseconds()
	switch fixed := newest - senderAhead.Milliseconds(); {
	case fixed <= at && fixed >= at-step:
		at = fixed
	case step > 0:
		at -= at % step
	}
	var id ulid.ULID
	// Times of the years 1970 to 10889 fit.
	_ = id.SetTime(uint64(max(at, 0)))
	_ = id.SetEntropy(hash[:10])
	return id
}
