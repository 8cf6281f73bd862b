package ingest

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/senders/imports"
)

// TextHandler serves POST requests with metrics in Prometheus' text formats. Its parameter is
// VictoriaMetrics' timestamp (ms).
func (s *Stage) TextHandler() http.Handler { return s.importer("text", s.text) }

// importer serves POST requests of a protocol with the status codes of remote-write and errors as
// text.
func (s *Stage) importer(protocol string, format func(*http.Request) (wireFormat, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := format(r)
		if err == nil {
			_, err = s.write(w, r, p)
		}
		code := s.answered(w, err, protocol)
		if err != nil {
			http.Error(w, s.public(r, err, code), code)
			return
		}
		w.WriteHeader(code)
	})
}

// text is the format of a request with metrics as text.
func (s *Stage) text(r *http.Request) (p wireFormat, err error) {
	p.form = "text"
	// Other types mean the text format too: curl names that of forms if it is not told another.
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/vnd.google.protobuf" || kind == "application/x-protobuf" {
		return p, unsupported{fmt.Sprintf("content type %q is not supported, only text/plain and application/openmetrics-text", kind)}
	}
	req := imports.Text{OpenMetrics: kind == "application/openmetrics-text"}
	at := r.URL.Query().Get("timestamp")
	if at != "" {
		if req.Time, err = strconv.ParseInt(at, 10, 64); err != nil {
			return p, errParameter{fmt.Errorf("timestamp %q is not a number of milliseconds", at)}
		}
	}
	p.decode = func(msg []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		req := req
		req.Body = msg
		if at == "" {
			req.Time = came.UnixMilli()
		}
		return imports.DecodeText(req, g, rules, room)
	}
	return p, nil
}

// packingOf is the compression of a body: gzip, zstd or none.
func packingOf(h http.Header) (body.Packing, error) {
	switch e := h.Get("Content-Encoding"); strings.ToLower(e) {
	case "", "identity":
		return body.Plain, nil
	case "gzip":
		return body.Gzip, nil
	case "zstd":
		return body.Zstd, nil
	default:
		return "", unsupported{fmt.Sprintf("%s encoding is not supported, only gzip and zstd", e)}
	}
}

// JSONLinesHandler serves POST requests with lines of JSON in VictoriaMetrics' format.
func (s *Stage) JSONLinesHandler() http.Handler {
	decode := func(msg []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return imports.DecodeJSON(msg, g, rules, room)
	}
	return s.importer("json", func(*http.Request) (wireFormat, error) { return wireFormat{form: "json", decode: decode}, nil })
}

// CSVHandler serves POST requests with CSV, whose columns the parameter format describes as with
// VictoriaMetrics.
func (s *Stage) CSVHandler() http.Handler {
	return s.importer("csv", func(r *http.Request) (p wireFormat, err error) {
		p.form = "text"
		format, err := imports.ParseCSVFormat(r.URL.Query().Get("format"))
		if err != nil {
			return p, errParameter{fmt.Errorf("format: %w", err)}
		}
		p.decode = func(msg []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return imports.DecodeCSV(imports.CSV{Body: msg, Format: format, Time: came.UnixMilli()}, g, rules, room)
		}
		return p, nil
	})
}
