package ingest

import (
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/otlp"
)

// OTLPHandler serves POST requests with metrics in the OpenTelemetry protocol over HTTP
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp). The answer has the content type of the
// request.
func (s *Stage) OTLPHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, p, rejected, err := s.otlpFormat(r)
		if err == nil {
			_, err = s.write(w, r, p)
		}
		code := otlpStatus(err)
		s.answeredWith(w, err, "otlp", code)
		if kind == "" { // neither form: a text for whoever sent it
			http.Error(w, s.public(r, err, code), code)
			return
		}
		w.Header().Set("Content-Type", kind)
		var answer []byte
		switch {
		case err == nil:
			answer = otlp.Accepted(kind, 0, "")
		case code == http.StatusOK:
			answer = otlp.Accepted(kind, *rejected, s.public(r, err, code))
		default:
			answer = otlp.Refused(kind, code, s.public(r, err, code))
		}
		w.WriteHeader(code)
		_, _ = w.Write(answer) // a client that went away needs no answer
	})
}

// otlpStatus is the status for a request in the OpenTelemetry protocol. What is refused of a
// request is reported with 200. Senders do not repeat a request after 500, so whatever may succeed
// later is 503.
func otlpStatus(err error) int {
	if err == nil || is[*errPartial](err) {
		return http.StatusOK
	}
	if code := status(err); code != http.StatusInternalServerError {
		return code
	}
	return http.StatusServiceUnavailable
}

// otlpFormat is the content type and the format of a request in the OpenTelemetry protocol.
// rejected is the number of its data points that were refused, once it is decoded.
func (s *Stage) otlpFormat(r *http.Request) (kind string, p wireFormat, rejected *int64, err error) {
	rejected = new(int64)
	text := r.Header.Get("Content-Type")
	switch kind, _, _ = mime.ParseMediaType(text); kind {
	case otlp.Protobuf:
		p.form = "protobuf"
	case otlp.JSON:
		p.form = "json"
	default:
		return "", p, rejected, unsupported{fmt.Sprintf("content type %q is not supported, only %s and %s", text, otlp.Protobuf, otlp.JSON)}
	}
	p.decode = func(msg []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (b *remotewrite.Batch, err error) {
		if kind == otlp.JSON {
			if msg, err = otlp.FromJSON(msg, &room); err != nil {
				return nil, err
			}
		}
		b, *rejected, err = s.otlp.Load().Decode(msg, g, rules, room)
		return b, err
	}
	return kind, p, rejected, nil
}
