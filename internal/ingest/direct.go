package ingest

import (
	"context"

	"github.com/promlake/promlake/internal/remotewrite"
)

// storeDirect makes one request durable, as segments of its own. A request that is sent again
// becomes further segments, which change no answer: of equal samples one counts. A name that
// followed from the request would save them, but after a deletion a request that is sent again
// could find its segment there, and deleted.
func (s *Stage) storeDirect(ctx context.Context, t *tenantIngest, b *remotewrite.Batch) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	begin := s.now()
	segments, err := t.segments([]*remotewrite.Batch{b}, t.nextID)
	if err == nil {
		err = putAll(ctx, segments, t.put)
	}
	s.met.flushed(remotewrite.TallyOf(b), err, s.now().Sub(begin))
	if err != nil {
		e := notDurable(err)
		s.log.Error("write failed; the sender was told to try again", "reference", e.reference, "tenant", t.id, "samples", remotewrite.TallyOf(b).Samples(), "err", err)
		return e
	}
	b.Generation.Stored.Note(b.Metadata)
	t.rotate()
	return nil
}

// bounded returns ctx with an end at the flush timeout, and when the stage gives up waiting.
func (s *Stage) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.set.FlushTimeout)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
