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
		e := notDurable(err)
		s.log.Error("send to the queue failed; the sender was told to try again", "reference", e.reference, "tenant", in.tenant.id, "samples", in.batch.samples(),
			"messages", len(ms), "bytes", bytes, "err", err)
		return e
	}
	s.met.queued.Add(float64(in.batch.samples()))
	s.met.queuedBytes.Add(float64(bytes))
	s.met.queuedParts.Add(float64(len(ms)))
	in.batch.gen.queued.note(in.batch.metadata)
	in.tenant.rotate()
	return nil
}

// messages packs what was accepted of a request into one message, or into several if it does not fit.
func (s *Stage) messages(in *incoming) ([]queue.Message, error) {
	p, frame := packers.Get().(*packer), buffers.Get().(*buffer)
	defer p.release()
	defer frame.release()
	d := division{stage: s, in: in, packer: p, frame: frame}
	n := in.batch.len()
	size, err := d.pack(in.batch)
	if err != nil {
		return nil, err
	}
	if d.fits(size) {
		err := d.seal(in.batch)
		return d.out, err
	}
	// A part of average density is made a little smaller than the limit.
	parts := max(size*21/20/s.maxMessage, len(p.out)*21/20/maxPacked) + 1
	for i, from := 0, 0; i < parts; i++ {
		to := n
		if i < parts-1 {
			to = in.batch.boundary(from, n, from+(n-from)/(parts-i))
		}
		if err := d.part(from, to); err != nil {
			return nil, err
		}
		from = to
	}
	return d.out, nil
}

// errBulky reports a request that cannot be divided into messages of the queue; the answer is 413.
type errBulky struct{ msg string }

func (e *errBulky) Error() string { return e.msg }

// division makes messages of a request.
type division struct {
	stage  *Stage
	in     *incoming
	packer *packer
	frame  *buffer // what was packed last
	out    []queue.Message
}

// pack packs a batch and returns how long its message would be.
func (d *division) pack(b *batch) (size int, err error) {
	columns, err := d.packer.pack(b)
	if err != nil {
		return 0, err
	}
	d.frame.b = zstdEncoder().EncodeAll(columns, d.frame.b[:0])
	return sealedLen(len(d.frame.b)), nil
}

func (d *division) fits(size int) bool {
	return size <= d.stage.maxMessage && len(d.packer.out) <= maxPacked
}

// part makes a message of the things [from, to), or two times more, of half of them each, as long as they do not fit.
func (d *division) part(from, to int) error {
	if from == to {
		return nil
	}
	b := d.in.batch.part(from, to)
	size, err := d.pack(&b)
	switch {
	case err != nil:
		return err
	case d.fits(size):
		return d.seal(&b)
	case to-from == 1:
		return &errBulky{fmt.Sprintf("one sample with its labels takes %d bytes on the queue, the limit of a message is %d (max-message-bytes of the queue)", size, d.stage.maxMessage)}
	}
	mid := d.in.batch.boundary(from, to, (from+to)/2)
	if err := d.part(from, mid); err != nil {
		return err
	}
	return d.part(mid, to)
}

// seal makes a message of what was packed last.
func (d *division) seal(b *batch) error {
	if len(d.out) == d.stage.set.MaxMessages {
		return &errBulky{fmt.Sprintf("the request takes more than %d messages on the queue (max-messages): send fewer samples in a request", d.stage.set.MaxMessages)}
	}
	e := &envelope{tenant: d.in.tenant.id, received: d.in.came, holds: tallyOf(b), bytes: len(d.packer.out)}
	d.out = append(d.out, queue.Message{Body: e.seal(d.frame.b)})
	return nil
}
