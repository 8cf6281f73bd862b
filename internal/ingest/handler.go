package ingest

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/message"
	"github.com/promlake/promlake/internal/remotewrite"
	"github.com/promlake/promlake/internal/tenant"
)

// Response headers of remote-write 2.0.
const (
	samplesWritten    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsWritten = "X-Prometheus-Remote-Write-Histograms-Written"
	exemplarsWritten  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

// unsupported is the error for a content type or encoding that is not remote-write's; the answer is 415.
type unsupported struct{ msg string }

func (e unsupported) Error() string { return e.msg }

// negotiate finds the protocol version of a request (remote-write 2.0 specification, "Content negotiation"): an
// absent proto parameter means 1.0. As with Prometheus, an absent encoding means snappy.
func negotiate(h http.Header) (remotewrite.Protocol, error) {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "snappy") {
		return 0, unsupported{fmt.Sprintf("%s encoding is not supported, only snappy", e)}
	}
	ct := h.Get("Content-Type")
	if ct == "" {
		return remotewrite.V1, nil
	}
	mt, params, err := mime.ParseMediaType(ct)
	if err != nil || mt != "application/x-protobuf" {
		return 0, unsupported{fmt.Sprintf("content type %q is not supported, only application/x-protobuf", ct)}
	}
	switch p := params["proto"]; p {
	case "", "prometheus.WriteRequest":
		return remotewrite.V1, nil
	case "io.prometheus.write.v2.Request":
		return remotewrite.V2, nil
	default:
		return 0, unsupported{fmt.Sprintf("remote-write message %q is not supported, only prometheus.WriteRequest and io.prometheus.write.v2.Request", p)}
	}
}

// Handler serves POST remote_write requests of both protocol versions.
func (s *Stage) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "remote_write takes POST only", http.StatusMethodNotAllowed)
			return
		}
		version, err := negotiate(r.Header)
		var n remotewrite.Tally
		if err == nil {
			n, err = s.write(w, r, version)
		}
		code := status(err)
		s.countLimited(err)
		s.met.requests.WithLabelValues(version.String(), strconv.Itoa(code)).Inc()
		if version == remotewrite.V2 {
			h := w.Header()
			h.Set(samplesWritten, strconv.Itoa(n.Floats))
			h.Set(histogramsWritten, strconv.Itoa(n.Hists))
			h.Set(exemplarsWritten, strconv.Itoa(n.Exemplars))
		}
		if err == nil {
			w.WriteHeader(code)
			return
		}
		if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		var slow *errSlow
		if errors.As(err, &slow) {
			w.Header().Set("Connection", "close") // the rest of the body is not waited for
		}
		http.Error(w, s.public(r, err, code), code)
	})
}

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

// status chooses the HTTP status of an answer. 5xx and 429 make senders try again, other 4xx do not.
func status(err error) int {
	var large *TooLarge
	var partial *errPartial
	var tenants errTenants
	var unsup unsupported
	var dense *remotewrite.DenseError
	var refused *remotewrite.Rejection
	var bulky *message.BulkyError
	var busy *errBusy
	var slow *errSlow
	switch {
	case err == nil:
		return http.StatusNoContent
	case errors.As(err, &busy), errors.As(err, &slow), errors.Is(err, errClosing):
		return http.StatusServiceUnavailable
	case errors.As(err, &unsup):
		return http.StatusUnsupportedMediaType
	case errors.As(err, &large), errors.As(err, &dense), errors.As(err, &bulky):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &partial), errors.As(err, &refused), errors.Is(err, remotewrite.ErrMalformed), errors.Is(err, errBody), errors.Is(err, errTenant):
		return http.StatusBadRequest
	case errors.As(err, &tenants):
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// errTenant wraps an invalid tenant name.
var errTenant = errors.New("invalid tenant")

// accepted is what was accepted of a request or message, and the share of MaxInflightBytes that it holds.
type accepted struct {
	batch  *remotewrite.Batch
	charge *charge
}

func (a *accepted) release() {
	a.batch.Release()
	a.charge.release()
}

// write takes one request through the stage. It returns when the samples are durable, with what was
// stored, or with the reason why they are not.
func (s *Stage) write(w http.ResponseWriter, r *http.Request, version remotewrite.Protocol) (stored remotewrite.Tally, err error) {
	id, err := tenant.FromRequest(r)
	if err != nil {
		return stored, fmt.Errorf("%w: %w", errTenant, err)
	}
	t, err := s.enter(id)
	if err != nil {
		return stored, err
	}
	left := false // the request is no longer announced on the tenant
	defer func() {
		if !left {
			t.groups.leave(nil)
		}
	}()
	came := s.now().Truncate(time.Millisecond)
	q, err := s.accept(w, r, version, t, came)
	if err != nil {
		return stored, err
	}
	b := q.batch
	n, refused := remotewrite.TallyOf(b), partial(b)
	switch {
	case b.Len() == 0:
		q.release()
	case s.set.Mode == Grouped:
		left = true
		g := t.groups.leave(q) // q belongs to the flusher from here on
		select {
		case <-g.done:
			err = g.err
		case <-r.Context().Done():
			err = fmt.Errorf("wait for flush: %w", r.Context().Err())
		}
	case s.set.Mode == Direct:
		defer q.release()
		err = s.storeDirect(r.Context(), t, b)
	default:
		defer q.release()
		err = s.enqueue(r.Context(), t, b, came)
	}
	if err != nil {
		return stored, err
	}
	return n, refused
}

// partial returns the error that reports the refused part of a batch, or nil.
func partial(b *remotewrite.Batch) error {
	if b.Err == nil {
		return nil
	}
	return &errPartial{b.Err, b.Rejected}
}

// accept reads and decodes the body of a request that came at a time.
func (s *Stage) accept(w http.ResponseWriter, r *http.Request, version remotewrite.Protocol, t *tenantIngest, came time.Time) (*accepted, error) {
	msg, c, err := s.readBody(w, r, t.id)
	if err != nil {
		return nil, err
	}
	defer msg.release()
	t.limitKnown()
	size := int64(len(msg.b))
	room := remotewrite.NewRoom(len(msg.b), s.set.firstRoom(size), min(remotewrite.MostRoom(size), s.set.MaxInflightBytes-size), func(more int64) error {
		alone, err := c.try(more)
		if alone {
			return &remotewrite.DenseError{Message: len(msg.b), Room: s.set.MaxInflightBytes - size}
		}
		return err
	})
	rules := remotewrite.Rules{
		Limits: &s.set.Limits, Horizon: s.set.Limits.Horizon(came), MaxWindows: s.set.MaxWindows, ToQueue: s.set.Mode == Buffered, Discard: s.met.discard,
	}
	b, err := remotewrite.Decode(version, msg.b, t.gen.Load(), rules, room)
	if err != nil {
		c.release()
		return nil, err
	}
	c.settle(costRequest + b.Bytes)
	return &accepted{b, c}, nil
}

// costRequest is what any request takes, in bytes.
const costRequest = 1 << 10

// firstRoom is what a message of n bytes may take before the decoder asks for more. With the message
// and its body it fits the limit.
func (s *Settings) firstRoom(n int64) int64 {
	body := max(s.MaxRequestBytes+1, bodyClasses[0])
	return max(0, min(64<<10+2*n, s.MaxInflightBytes-body-n))
}
