package ingest

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/message"
	"github.com/promlake/promlake/internal/remotewrite"
)

// enqueue puts a request that came at a time on the queue. It returns nil only when all of it is
// durable there.
func (s *Stage) enqueue(ctx context.Context, t *tenantIngest, b *remotewrite.Batch, came time.Time) error {
	ms, err := message.Split(b, t.id, came, s.maxMessage, s.set.MaxMessages)
	if err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	bytes := 0
	for _, m := range ms {
		bytes += len(m.Body)
	}
	samples := remotewrite.TallyOf(b).Samples()
	if err := s.queue.Send(ctx, ms...); err != nil {
		e := notDurable(err)
		s.log.Error("send to the queue failed; the sender was told to try again", "reference", e.reference, "tenant", t.id, "samples", samples,
			"messages", len(ms), "bytes", bytes, "err", err)
		return e
	}
	s.met.queued.Add(float64(samples))
	s.met.queuedBytes.Add(float64(bytes))
	s.met.queuedParts.Add(float64(len(ms)))
	b.Generation.Queued.Note(b.Metadata)
	t.rotate()
	return nil
}
