package ingest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/ingest/quota"
)

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
		w.Header().Set("Content-Type", "application/json")
		id, err := tenant.FromRequest(r)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": "bad_data", "error": "invalid tenant: " + err.Error()})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": s.refusals.Of(id)}) // a client that went away needs no answer
	})
}
