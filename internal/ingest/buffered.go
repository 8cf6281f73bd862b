package ingest

import (
	"context"
	"fmt"

	"github.com/promlake/promlake/internal/queue"
)

// enqueue puts a request on the queue. It returns nil only when all of it is durable there.
func (s *Stage) enqueue(ctx context.Context, in *incoming) error {
	ms, err := s.messages(in)
	if err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	bytes := 0
	for _, m := range ms {
		bytes += len(m.Body)
	}
	if err := s.queue.Send(ctx, ms...); err != nil {
		s.log.Error("send to the queue failed; the sender was told to try again", "tenant", in.tenant.id, "samples", in.batch.samples(),
			"messages", len(ms), "bytes", bytes, "err", err)
		return fmt.Errorf("%w: %w", errNotDurable, err)
	}
	s.met.queued.Add(float64(in.batch.samples()))
	s.met.queuedBytes.Add(float64(bytes))
	s.met.queuedParts.Add(float64(len(ms)))
	in.tenant.rotate()
	return nil
}

// messages packs a request, as it was sent, into one message, or into several if it does not fit.
func (s *Stage) messages(in *incoming) ([]queue.Message, error) {
	frame := buffers.Get().(*buffer)
	defer frame.release()
	frame.b = zstdEncoder().EncodeAll(in.plain.b, frame.b[:0])
	if sealedLen(len(frame.b)) <= s.maxMessage {
		return []queue.Message{{Body: in.envelope(len(in.plain.b), tallyOf(in.batch)).seal(frame.b)}}, nil
	}
	p, err := takeApart(in.version, in.plain.b)
	if err != nil {
		return nil, err
	}
	d := division{stage: s, in: in, pieces: p, frame: frame}
	// A part of average density is made a little smaller than the limit.
	parts := sealedLen(len(frame.b))*21/20/s.maxMessage + 1
	for i := range parts {
		if err := d.pack(len(p.items)*i/parts, len(p.items)*(i+1)/parts); err != nil {
			return nil, err
		}
	}
	return d.out, nil
}

func (in *incoming) envelope(bytes int, accepted tally) *envelope {
	return &envelope{tenant: in.tenant.id, version: in.version, received: in.came, accepted: accepted, bytes: bytes}
}

// division makes messages of the pieces of a request.
type division struct {
	stage  *Stage
	in     *incoming
	pieces *pieces
	plain  []byte
	frame  *buffer
	out    []queue.Message
}

// pack makes a message of the pieces [from, to), or two times more, of half of them each, as long as they do not fit.
func (d *division) pack(from, to int) error {
	if from == to {
		return nil
	}
	var err error
	if d.plain, err = d.pieces.message(d.plain[:0], from, to); err != nil {
		return err
	}
	d.frame.b = zstdEncoder().EncodeAll(d.plain, d.frame.b[:0])
	if size := sealedLen(len(d.frame.b)); size > d.stage.maxMessage {
		if to-from == 1 {
			return &errBulky{fmt.Sprintf("one series takes %d bytes on the queue, the limit of a message is %d (max-message-bytes of the queue): send fewer of its samples in a request",
				size, d.stage.maxMessage)}
		}
		mid := (from + to) / 2
		if err := d.pack(from, mid); err != nil {
			return err
		}
		return d.pack(mid, to)
	}
	return d.seal()
}

// seal makes a message of the part at hand. It is read as its consumer will read it.
func (d *division) seal() error {
	b, err := d.stage.read(d.in.version, d.plain, d.in.tenant, d.in.came, true)
	if err != nil {
		return fmt.Errorf("read a part of the request: %w", err)
	}
	accepted, empty := tallyOf(b), b.empty()
	b.release()
	if empty { // all of it was refused
		return nil
	}
	if len(d.out) == d.stage.set.MaxMessages {
		return &errBulky{fmt.Sprintf("the request takes more than %d messages on the queue (max-messages): send fewer samples in a request", d.stage.set.MaxMessages)}
	}
	d.out = append(d.out, queue.Message{Body: d.in.envelope(len(d.plain), accepted).seal(d.frame.b)})
	return nil
}
