package ingest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/ingest/quota"
)

// Source reads samples of this process into a batch of the generation, as remotewrite.Decode and
// remotewrite.Collect do.
type Source = func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error)

// Append makes samples of this process durable, such as those of scrapes, and returns then. They
// join the requests of other senders of the tenant. size is about the memory (bytes) that they
// take. refused says what was refused because it breaks a rule or a limit: to append it again is
// useless. Other samples of the source are durable nevertheless, unless the source was refused as a
// whole. With an error it is not known whether the samples are durable, and they should be appended
// again; two times the same sample counts once. The batch of a source that ended with ctx may still
// become durable.
func (s *Stage) Append(ctx context.Context, tenantID string, size int64, source Source) (refused, err error) {
	if _, err := tenant.Parse(tenantID); err != nil {
		return fmt.Errorf("%w: %w", errTenant, err), nil
	}
	refused, err = s.append(ctx, tenantID, size, source)
	code := status(err)
	s.countLimited(err)
	if err == nil && refused != nil {
		code = status(refused)
	}
	s.met.requests.WithLabelValues("append", strconv.Itoa(code)).Inc()
	if err != nil && code < http.StatusInternalServerError && code != http.StatusTooManyRequests {
		return err, nil
	}
	return refused, err
}

func (s *Stage) append(ctx context.Context, tenantID string, size int64, source Source) (refused, err error) {
	t, err := s.enter(tenantID)
	if err != nil {
		return nil, err
	}
	joined := false
	defer func() {
		if !joined {
			t.groups.Leave()
		}
	}()
	came := s.now().Truncate(time.Millisecond)
	charge := s.inflight.Admit(t.id)
	size = min(size, s.set.MaxInflightBytes/2)
	if err := charge.Await(ctx, s.set.InflightWait, size, true); err != nil {
		charge.Release()
		return nil, err
	}
	room := remotewrite.NewRoom(int(size), size, s.set.MaxInflightBytes, func(more int64) error {
		alone, err := charge.Try(more)
		if alone {
			return &remotewrite.DenseError{Message: int(size), Room: s.set.MaxInflightBytes}
		}
		return err
	})
	limits := s.runtime.Current(ctx).Of(t.id)
	k := t.learning(limits)
	b, err := source(k.Generation, t.rules(k, came), room)
	if err == nil {
		// Nobody can divide these samples: beyond the burst they would be refused for ever.
		err = t.spend(limits, b, limits.IngestionBurst)
	}
	if err != nil {
		charge.Release()
		return nil, err
	}
	charge.Settle(costRequest + b.Bytes)
	refused = partial(b)
	joined, err = s.keep(ctx, t, group.Request{Batch: b, Charge: charge}, came)
	return refused, err
}

// rules are those for the samples of a request that came at a time and is decoded with k.
func (t *tenantIngest) rules(k *knowledge, came time.Time) remotewrite.Rules {
	s, l := t.stage, k.limits
	r := remotewrite.Rules{
		Limits: &l.Limits, TimeRange: l.TimeRange(came), MaxWindows: s.set.MaxWindows, ToQueue: s.set.Mode == Buffered,
		Relabel: l.Relabel, Discard: t.discarder(),
	}
	if l.CountsSeries() {
		r.Admit = func(lset []series.Label) error { return t.quota.Series(l, lset, came) }
	}
	return r
}

// maxNoted is how many refusals of one request the audit takes.
const maxNoted = 10

// discarder returns what counts the refused samples of a request.
func (t *tenantIngest) discarder() func(remotewrite.Reason, error, int) {
	noted := 0
	return func(r remotewrite.Reason, err error, samples int) {
		t.stage.met.discard(t.id, r, samples)
		if err != nil && noted < maxNoted {
			noted++
			t.note(r, err, samples)
		}
	}
}

// note records a refusal for the audit.
func (t *tenantIngest) note(r remotewrite.Reason, err error, samples int) {
	t.stage.refusals.Note(t.id, quota.Refusal{Time: t.stage.now(), Reason: string(r), Samples: samples, Error: err.Error()})
}

// spend counts the samples of a batch as at most so many, or releases it and returns a
// *quota.RateError.
func (t *tenantIngest) spend(l *admission.Limits, b *remotewrite.Batch, most int) error {
	n := remotewrite.TallyOf(b).Samples()
	err := t.quota.Samples(l, min(n, most), t.stage.now())
	if err != nil {
		b.Release()
		t.exceeded(err, n)
	}
	return err
}

// exceeded counts what a rate refused.
func (t *tenantIngest) exceeded(err error, samples int) {
	t.stage.met.discard(t.id, remotewrite.ReasonRate, samples)
	t.note(remotewrite.ReasonRate, err, samples)
}

// acceptedLimits are those by which a message of the write queue is checked. Where tenants have
// limits of their own, these may differ from those under which the message was accepted, and what
// was accepted is not refused because of that.
func (s *Stage) acceptedLimits() *remotewrite.Limits {
	l := s.set.Limits.Limits
	if s.runtime.Overriding() {
		l = s.set.Limits.Accepted()
	}
	return &l
}

// RefusedHandler serves GET requests for the last refusals of a tenant.
func (s *Stage) RefusedHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := tenant.FromRequest(r)
		if err != nil {
			answerJSON(w, http.StatusBadRequest, map[string]string{"status": "error", "errorType": "bad_data", "error": "invalid tenant: " + err.Error()})
			return
		}
		answerJSON(w, http.StatusOK, map[string]any{"status": "success", "data": s.refusals.Of(id)})
	})
}
