package ingest

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/tenant"
)

// protocol is a version of the remote-write protocol.
type protocol int

const (
	protocolV1 protocol = 1 // prometheus.WriteRequest, remote-write specification 1.0
	protocolV2 protocol = 2 // io.prometheus.write.v2.Request, remote-write specification 2.0
)

func (p protocol) String() string { return strconv.Itoa(int(p)) }

// Response headers of remote-write 2.0.
const (
	samplesWritten    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsWritten = "X-Prometheus-Remote-Write-Histograms-Written"
	exemplarsWritten  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

// written counts what of a request is durable.
type written struct{ samples, histograms, exemplars int }

// unsupported is the error for a content type or encoding that is not remote-write's; the answer is 415.
type unsupported struct{ msg string }

func (e unsupported) Error() string { return e.msg }

// negotiate finds the protocol version of a request (remote-write 2.0 specification, "Content negotiation"): an
// absent proto parameter means 1.0. As with Prometheus, an absent encoding means snappy.
func negotiate(h http.Header) (protocol, error) {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "snappy") {
		return 0, unsupported{fmt.Sprintf("%s encoding is not supported, only snappy", e)}
	}
	ct := h.Get("Content-Type")
	if ct == "" {
		return protocolV1, nil
	}
	mt, params, err := mime.ParseMediaType(ct)
	if err != nil || mt != "application/x-protobuf" {
		return 0, unsupported{fmt.Sprintf("content type %q is not supported, only application/x-protobuf", ct)}
	}
	switch p := params["proto"]; p {
	case "", "prometheus.WriteRequest":
		return protocolV1, nil
	case "io.prometheus.write.v2.Request":
		return protocolV2, nil
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
		var n written
		if err == nil {
			n, err = s.write(w, r, version)
		}
		code := status(err)
		s.countLimited(err)
		s.met.requests.WithLabelValues(version.String(), strconv.Itoa(code)).Inc()
		if version == protocolV2 {
			h := w.Header()
			h.Set(samplesWritten, strconv.Itoa(n.samples))
			h.Set(histogramsWritten, strconv.Itoa(n.histograms))
			h.Set(exemplarsWritten, strconv.Itoa(n.exemplars))
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
	var dense *errDense
	var refused *Rejection
	var bulky *errBulky
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
	case errors.As(err, &partial), errors.As(err, &refused), errors.Is(err, errMalformed), errors.Is(err, errBody), errors.Is(err, errTenant):
		return http.StatusBadRequest
	case errors.As(err, &tenants):
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// errTenant wraps an invalid tenant name.
var errTenant = errors.New("invalid tenant")

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// write takes one request through the stage and returns when its samples are durable, or with the reason why that is not so.
func (s *Stage) write(w http.ResponseWriter, r *http.Request, version protocol) (written, error) {
	id, err := tenant.FromRequest(r)
	if err != nil {
		return written{}, fmt.Errorf("%w: %w", errTenant, err)
	}
	t, err := s.enter(id)
	if err != nil {
		return written{}, err
	}
	if s.set.Mode == Grouped {
		return s.writeGrouped(w, r, version, t)
	}
	defer t.groups.leave(nil)
	in, err := s.take(w, r, version, t)
	if err != nil {
		return written{}, err
	}
	defer in.release()
	b := in.batch
	n, refused := written{len(b.floats), len(b.hists), len(b.exemplars)}, partial(b)
	switch {
	case b.empty():
		return n, refused
	case s.set.Mode == Direct:
		err = s.storeDirect(r.Context(), in)
	default:
		err = s.enqueue(r.Context(), in)
	}
	if err != nil {
		return written{}, err
	}
	return n, refused
}

// writeGrouped lets a request join the tenant's group. The tenant has been entered.
func (s *Stage) writeGrouped(w http.ResponseWriter, r *http.Request, version protocol, t *tenantIngest) (written, error) {
	left := false
	defer func() {
		if !left {
			t.groups.leave(nil)
		}
	}()
	b, err := s.decode(w, r, version, t)
	if err != nil {
		return written{}, err
	}
	if b.empty() {
		err = partial(b)
		b.release()
		return written{}, err
	}
	n := written{len(b.floats), len(b.hists), len(b.exemplars)}
	refused := partial(b)
	left = true
	g := t.groups.leave(b) // b belongs to the flusher from here on
	select {
	case <-g.done:
	case <-r.Context().Done():
		return written{}, fmt.Errorf("wait for flush: %w", r.Context().Err())
	}
	if g.err != nil {
		return written{}, g.err
	}
	return n, refused
}

// partial returns the error that tells of the refused part of a batch, or nil.
func partial(b *batch) error {
	if b.err == nil {
		return nil
	}
	return &errPartial{b.err, b.rejected}
}

// decode reads a request's body into a batch, which holds the request's charge.
func (s *Stage) decode(w http.ResponseWriter, r *http.Request, version protocol, t *tenantIngest) (*batch, error) {
	plain := buffers.Get().(*buffer)
	defer plain.release()
	c, err := s.readBody(w, r, t.id, plain)
	if err != nil {
		return nil, err
	}
	b, err := s.read(version, plain.b, t, s.now(), c)
	if err != nil {
		c.release()
		return nil, err
	}
	return b, nil
}

// read decodes a message that came at a time. The batch takes the charge over, which covers the
// message and firstRoom of it.
func (s *Stage) read(version protocol, msg []byte, t *tenantIngest, came time.Time, c *charge) (*batch, error) {
	t.limitKnown()
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	size := int64(len(msg))
	d.limits, d.maxWindows, d.queues = &s.set.Limits, s.set.MaxWindows, s.set.Mode == Buffered
	d.begin(msg, s.set.firstRoom(size), min(roomBase+roomPerByte*size, s.set.MaxInflightBytes-size), func(more int64) error {
		alone, err := c.try(more)
		if alone {
			return &errDense{len(msg), s.set.MaxInflightBytes - size}
		}
		return err
	})
	b, err := d.decode(version, msg, t.gen.Load(), s.set.Limits.horizon(came))
	if err != nil {
		return nil, err
	}
	b.fit()
	b.charge = c
	c.settle(costRequest + d.used())
	return b, nil
}
