package ingest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/ingest/message"
	"github.com/promlake/promlake/internal/ingest/quota"
	"github.com/promlake/promlake/internal/senders/datadog"
	"github.com/promlake/promlake/internal/senders/imports"
	"github.com/promlake/promlake/internal/senders/opentsdb"
	"github.com/promlake/promlake/internal/senders/otlp"
	"github.com/promlake/promlake/internal/senders/push"
	"github.com/promlake/promlake/internal/store/objstore"
)

// errPartial wraps the first offence of a request whose valid part is durable.
type errPartial struct {
	err      error
	rejected int
}

func (e *errPartial) Error() string {
	if e.rejected == 1 {
		return e.err.Error()
	}
	return fmt.Sprintf("%s; and %d more offences; what is valid was stored", e.err, e.rejected-1)
}

func (e *errPartial) Unwrap() error { return e.err }

// errWhole wraps the first offence of a request that was refused as a whole because of it.
type errWhole struct{ errPartial }

func (e *errWhole) Error() string {
	if e.rejected == 1 {
		return fmt.Sprintf("%s; nothing was stored", e.err)
	}
	return fmt.Sprintf("%s; and %d more offences; nothing was stored", e.err, e.rejected-1)
}

// partial returns the error that reports the refused part of a batch, or nil.
func partial(b *remotewrite.Batch) error {
	if b.Err == nil {
		return nil
	}
	return &errPartial{b.Err, b.Rejected}
}

// is reports whether an error is of a type, or wraps one.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// status chooses the HTTP status of an answer. 5xx and 429 make senders try again, other 4xx do
// not.
func status(err error) int {
	rate, _ := errors.AsType[*quota.RateError](err)
	switch {
	case err == nil:
		return http.StatusNoContent
	case rate != nil && rate.Wait == 0:
		return http.StatusBadRequest
	case rate != nil:
		return http.StatusTooManyRequests
	case is[*body.BusyError](err), errors.Is(err, memory.ErrMemory), is[*body.SlowError](err), errors.Is(err, group.ErrClosing), errors.Is(err, errContended), errors.Is(err, objstore.ErrReadOnly):
		return http.StatusServiceUnavailable
	case is[unsupported](err):
		return http.StatusUnsupportedMediaType
	case is[*body.TooLarge](err), is[*remotewrite.DenseError](err), is[*message.BulkyError](err), is[*push.TooLarge](err):
		return http.StatusRequestEntityTooLarge
	case is[*errPartial](err), is[*errWhole](err), is[errParameter](err), is[*remotewrite.Rejection](err), errors.Is(err, remotewrite.ErrMalformed), errors.Is(err, imports.ErrText), errors.Is(err, otlp.ErrMalformed), errors.Is(err, opentsdb.ErrInvalid), errors.Is(err, datadog.ErrInvalid), errors.Is(err, push.ErrInvalid), errors.Is(err, body.ErrInvalid), errors.Is(err, errTenant):
		return http.StatusBadRequest
	case is[errTenants](err):
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// errTenant wraps an invalid tenant name.
var errTenant = errors.New("invalid tenant")

// errNotDurable reports that the store or the queue did not confirm a write: the sender must try
// again. The cause stands in the log under the reference, and not in the answer: it names buckets,
// accounts and hosts.
type errNotDurable struct {
	reference string
	cause     error
}

func (e *errNotDurable) Error() string {
	return "samples could not be stored, try again (the log has the cause under reference " + e.reference + ")"
}

func (e *errNotDurable) Unwrap() error { return e.cause }

// notDurable gives a cause a reference.
func notDurable(cause error) *errNotDurable { return &errNotDurable{newReference(), cause} }

func newReference() string {
	var b [6]byte
	// crypto/rand.Read never fails (Go 1.24 and later).
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// public is an error as a sender may see it.
func (s *Stage) public(r *http.Request, err error, code int) string {
	if retry := code == http.StatusInternalServerError || code == http.StatusServiceUnavailable && (status(err) == http.StatusInternalServerError || errors.Is(err, objstore.ErrReadOnly)); !retry || is[*errNotDurable](err) || errors.Is(err, context.Canceled) {
		return err.Error()
	}
	e := notDurable(err)
	s.log.Error("write failed; the sender was told to try again", "reference", e.reference, "path", r.URL.Path, "err", err)
	return e.Error()
}

// answerJSON writes an answer.
func answerJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // a client that went away needs no answer
}

// countLimited counts a request that a limit of the process refused.
func (s *Stage) countLimited(err error) {
	limit := ""
	large, _ := errors.AsType[*body.TooLarge](err)
	rate, _ := errors.AsType[*quota.RateError](err)
	refused, _ := errors.AsType[*remotewrite.Rejection](err)
	pushed, _ := errors.AsType[*push.TooLarge](err)
	switch {
	case err == nil:
		return
	case errors.Is(err, memory.ErrMemory):
		limit = "memory-limit"
	case is[*body.BusyError](err), is[*remotewrite.DenseError](err):
		limit = "max-inflight-bytes"
	case is[*body.SlowError](err):
		limit = "min-body-rate"
	case large != nil:
		limit = large.Limit
	case rate != nil:
		limit = rate.Limit
	case pushed != nil:
		limit = pushed.Limit
	case is[errTenants](err):
		limit = "max-tenants"
	case refused != nil && refused.Reason == remotewrite.ReasonWindows:
		limit = "max-windows-per-request"
	default:
		return
	}
	s.met.limited.WithLabelValues(limit).Inc()
}
