package ingest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/promlake/promlake/internal/memory"
	"github.com/promlake/promlake/internal/remotewrite"
)

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
	if code != http.StatusInternalServerError || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err.Error()
	}
	e := notDurable(err)
	s.log.Error("write failed; the sender was told to try again", "reference", e.reference, "path", r.URL.Path, "err", err)
	return e.Error()
}

// countLimited counts a request that a limit of the process refused.
func (s *Stage) countLimited(err error) {
	var (
		busy    *errBusy
		slow    *errSlow
		large   *TooLarge
		dense   *remotewrite.DenseError
		tenants errTenants
		refused *remotewrite.Rejection
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
	case errors.As(err, &tenants):
		limit = "max-tenants"
	case errors.As(err, &refused) && refused.Reason == remotewrite.ReasonWindows:
		limit = "max-windows-per-request"
	default:
		return
	}
	s.met.limited.WithLabelValues(limit).Inc()
}
