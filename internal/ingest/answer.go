package ingest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	"github.com/promlake/promlake/internal/senders/opentsdb"
	"github.com/promlake/promlake/internal/senders/otlp"
	"github.com/promlake/promlake/internal/senders/promtext"
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
type errWhole struct {
	err      error
	rejected int
}

func (e *errWhole) Error() string {
	if e.rejected == 1 {
		return fmt.Sprintf("%s; nothing was stored", e.err)
	}
	return fmt.Sprintf("%s; and %d more offences; nothing was stored", e.err, e.rejected-1)
}

func (e *errWhole) Unwrap() error { return e.err }

// partial returns the error that reports the refused part of a batch, or nil.
func partial(b *remotewrite.Batch) error {
	if b.Err == nil {
		return nil
	}
	return &errPartial{b.Err, b.Rejected}
}

// status chooses the HTTP status of an answer. 5xx and 429 make senders try again, other 4xx do
// not.
func status(err error) int {
	var large *body.TooLarge
	var partial *errPartial
	var whole *errWhole
	var parameter errParameter
	var tenants errTenants
	var unsup unsupported
	var dense *remotewrite.DenseError
	var refused *remotewrite.Rejection
	var bulky *message.BulkyError
	var busy *body.BusyError
	var slow *body.SlowError
	var rate *quota.RateError
	var pushed *push.TooLarge
	switch {
	case err == nil:
		return http.StatusNoContent
	case errors.As(err, &rate) && rate.Wait == 0:
		return http.StatusBadRequest
	case errors.As(err, &rate):
		return http.StatusTooManyRequests
	case errors.As(err, &busy), errors.Is(err, memory.ErrMemory), errors.As(err, &slow), errors.Is(err, group.ErrClosing), errors.Is(err, errContended), errors.Is(err, objstore.ErrReadOnly):
		return http.StatusServiceUnavailable
	case errors.As(err, &unsup):
		return http.StatusUnsupportedMediaType
	case errors.As(err, &large), errors.As(err, &dense), errors.As(err, &bulky), errors.As(err, &pushed):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &partial), errors.As(err, &whole), errors.As(err, &parameter), errors.As(err, &refused), errors.Is(err, remotewrite.ErrMalformed), errors.Is(err, promtext.ErrInvalid), errors.Is(err, otlp.ErrMalformed), errors.Is(err, opentsdb.ErrInvalid), errors.Is(err, datadog.ErrInvalid), errors.Is(err, push.ErrInvalid), errors.Is(err, body.ErrInvalid), errors.Is(err, errTenant):
		return http.StatusBadRequest
	case errors.As(err, &tenants):
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
	var known *errNotDurable
	if retry := code == http.StatusInternalServerError || code == http.StatusServiceUnavailable && (status(err) == http.StatusInternalServerError || errors.Is(err, objstore.ErrReadOnly)); !retry || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err.Error()
	}
	e := notDurable(err)
	s.log.Error("write failed; the sender was told to try again", "reference", e.reference, "path", r.URL.Path, "err", err)
	return e.Error()
}

// countLimited counts a request that a limit of the process refused.
func (s *Stage) countLimited(err error) {
	var (
		busy    *body.BusyError
		slow    *body.SlowError
		large   *body.TooLarge
		dense   *remotewrite.DenseError
		tenants errTenants
		refused *remotewrite.Rejection
		rate    *quota.RateError
		pushed  *push.TooLarge
	)
	limit := ""
	switch {
	case err == nil:
		return
	case errors.Is(err, memory.ErrMemory):
		limit = "memory-limit"
	case errors.As(err, &busy), errors.As(err, &dense):
		limit = "max-inflight-bytes"
	case errors.As(err, &slow):
		limit = "min-body-rate"
	case errors.As(err, &large):
		limit = large.Limit
	case errors.As(err, &rate):
		limit = rate.Limit
	case errors.As(err, &pushed):
		limit = pushed.Limit
	case errors.As(err, &tenants):
		limit = "max-tenants"
	case errors.As(err, &refused) && refused.Reason == remotewrite.ReasonWindows:
		limit = "max-windows-per-request"
	default:
		return
	}
	s.met.limited.WithLabelValues(limit).Inc()
}
