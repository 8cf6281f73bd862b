package ingest

import (
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/senders/datadog"
)

// DatadogHandler serves POST requests with series of Datadog's API in a version: datadog.V1 or
// datadog.V2, which is also taken as protobuf; or with datadog.Sketches, which are protobuf.
// Answers have Datadog's form.
func (s *Stage) DatadogHandler(version datadog.Form) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := s.datadog(r, version)
		if err == nil {
			_, err = s.write(w, r, p)
		}
		code := status(err)
		if err == nil {
			code = http.StatusAccepted
		}
		s.answeredWith(w, err, "datadog", code)
		var answer any = map[string][]string{"errors": {}}
		switch {
		case err != nil:
			answer = map[string][]string{"errors": {s.public(r, err, code)}}
		case version == datadog.V1:
			answer = map[string]string{"status": "ok"}
		}
		answerJSON(w, code, answer)
	})
}

// DatadogAnswer serves requests of Datadog's agent that carry no samples with a constant answer:
// the check of its key, service checks, and what it says of its host. Their bodies are not read.
func DatadogAnswer(code int, answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer)) // a client that went away needs no answer
	})
}

// datadog is the format of a request.
func (s *Stage) datadog(r *http.Request, version datadog.Form) (p wireFormat, err error) {
	p.form = "json"
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch packed := kind == "application/x-protobuf" || kind == "application/protobuf"; {
	case version == datadog.Sketches:
		if p.form = "protobuf"; !packed {
			return p, unsupported{fmt.Sprintf("content type %q is not supported for sketches, only application/x-protobuf", kind)}
		}
	case packed:
		if version == datadog.V1 {
			return p, unsupported{fmt.Sprintf("content type %q is not supported by version 1, only application/json", kind)}
		}
		version, p.form = datadog.V2Protobuf, "protobuf"
	}
	if strings.EqualFold(r.Header.Get("Content-Encoding"), "deflate") {
		p.packing = body.Deflate
	}
	p.decode = func(msg []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return datadog.Decode(datadog.Request{Body: msg, Form: version}, g, rules, room)
	}
	return p, nil
}
