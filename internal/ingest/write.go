package ingest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/ingest/message"
)

// A wireFormat is how one request's samples are sent.
type wireFormat struct {
	packing body.Packing // Plain: as the request's header says
	form    string       // what the body decompresses to
	decode  func(msg []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error)
	most    func(size int64) int64 // most memory for decoding a message of size bytes; nil: what is free
	whole   bool                   // one offence refuses the whole request
	list    int                    // how many offences the batch lists
	extra   bool                   // the format itself adds the labels of the parameters extra_label
}

// write takes one request through the stage. It returns what is durable, with an *errPartial if a
// part of the request was refused.
func (s *Stage) write(w http.ResponseWriter, r *http.Request, p wireFormat) (stored remotewrite.Tally, err error) {
	if p.packing == body.Plain {
		if p.packing, err = packingOf(r.Header); err != nil {
			return stored, err
		}
	}
	id, err := tenant.FromRequest(r)
	if err != nil {
		return stored, fmt.Errorf("%w: %w", errTenant, err)
	}
	t, err := s.enter(id)
	if err != nil {
		return stored, err
	}
	joined := false
	defer func() {
		if !joined {
			t.groups.Leave()
		}
	}()
	came := s.now().Truncate(time.Millisecond)
	limits := s.runtime.Current(r.Context()).Of(id)
	if err := t.quota.Request(limits, came); err != nil {
		t.exceeded(err, 0)
		return stored, err
	}
	var extra []series.Label
	if !p.extra {
		if extra, err = extraLabels(r, &limits.Limits); err != nil {
			return stored, err
		}
	}
	in, err := s.accept(w, r, p, t, limits, came, extra)
	if err != nil {
		return stored, err
	}
	n, refused := remotewrite.TallyOf(in.Batch), partial(in.Batch)
	if joined, err = s.keep(r.Context(), t, in, came); err != nil {
		return stored, err
	}
	return n, refused
}

// keep makes an accepted request durable and releases it. joined means that the request has joined
// a group, which owns it.
func (s *Stage) keep(ctx context.Context, t *tenantIngest, in group.Request, came time.Time) (joined bool, err error) {
	if s.set.Mode == Grouped && in.Batch.Len() > 0 {
		return true, t.groups.Join(in).Wait(ctx)
	}
	defer in.Release()
	return false, s.persist(ctx, t, in.Batch, came)
}

// accept reads and decodes the body of a request that came at a time. All of its series get the
// extra labels.
func (s *Stage) accept(w http.ResponseWriter, r *http.Request, p wireFormat, t *tenantIngest, limits *admission.Limits, came time.Time, extra []series.Label) (group.Request, error) {
	msg, charge, err := s.bodies.Read(w, r, t.id, p.packing, p.form)
	if err != nil {
		return group.Request{}, err
	}
	defer msg.Release()
	if err := t.quota.Bytes(limits, len(msg.Bytes), came); err != nil {
		t.exceeded(err, 0)
		charge.Release()
		return group.Request{}, err
	}
	size := int64(len(msg.Bytes))
	free := s.set.MaxInflightBytes - size
	most := free
	if p.most != nil {
		most = min(p.most(size), free)
	}
	room := remotewrite.NewRoom(len(msg.Bytes), s.bodies.Ahead(size), most, func(more int64) error {
		alone, err := charge.Try(more)
		if alone {
			return &remotewrite.DenseError{Message: len(msg.Bytes), Room: free}
		}
		return err
	})
	k := t.learning(limits)
	rules := t.rules(k, came)
	rules.Labels, rules.Offences = extra, p.list
	b, err := p.decode(msg.Bytes, came, k.Generation, rules, room)
	if err == nil && p.whole && b.Err != nil {
		err = &errWhole{errPartial{b.Err, b.Rejected}}
		b.Release()
	}
	if err == nil {
		err = t.spend(limits, b, math.MaxInt)
	}
	if err != nil {
		charge.Release()
		return group.Request{}, err
	}
	charge.Settle(costRequest + b.Bytes)
	return group.Request{Batch: b, Charge: charge}, nil
}

// costRequest is what any request takes, in bytes.
const costRequest = 1 << 10

// persist makes one request durable by itself: on the queue in mode Buffered, else as segments of
// its own. A request that is sent again becomes further segments, which change no answer: of equal
// samples one counts. Their names are random: if they followed from the request, a request that is
// sent again after a deletion could find its segment there, and deleted.
func (s *Stage) persist(ctx context.Context, t *tenantIngest, b *remotewrite.Batch, came time.Time) error {
	if b.Len() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.set.FlushTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() // when Close gives up waiting
	if s.set.Mode == Buffered {
		// The request is acknowledged only when all of it is durable on the queue.
		ms, err := message.Split(b, t.id, came, s.maxMessage, s.set.MaxMessages)
		if err != nil {
			return err
		}
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
		b.Generation.Untimed.Note(b.Exemplars)
		t.rotate()
		return nil
	}
	if err := t.flush(ctx, []*remotewrite.Batch{b}); err != nil {
		e := notDurable(err)
		s.log.Error("write failed; the sender was told to try again", "reference", e.reference, "tenant", t.id, "samples", remotewrite.TallyOf(b).Samples(), "err", err)
		return e
	}
	return nil
}
