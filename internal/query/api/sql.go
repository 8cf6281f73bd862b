package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/prometheus/prometheus/util/httputil"

	"github.com/promlake/promlake/internal/prom/timeparam"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/request"
)

// SQLer is a Backend that answers SQL.
type SQLer interface {
	// SQL runs a statement and writes its result. Errors are those of a Backend; errors with a
	// method BadQuery, which are answered with 400; and errors with a method QueryFailed, which are
	// answered with 422.
	SQL(ctx context.Context, q request.Statement, out request.Output) error
}

// sqlTypes are the media types of the formats. The first one is the default.
var sqlTypes = []struct{ format, media, header string }{
	{"json", "application/json", "application/json"},
	{"csv", "text/csv", "text/csv; charset=utf-8; header=present"},
	{"arrow", "application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.stream"},
	{"parquet", "application/vnd.apache.parquet", "application/vnd.apache.parquet"},
}

// answerSQL answers /api/v1/sql. Its parameters are query, params, format and snapshot: in
// the URL, in a form, or in a JSON object as the body.
func (s *server) answerSQL(w http.ResponseWriter, r *http.Request) {
	q, r, err := s.sqlQuery(r)
	if err != nil {
		s.respond.Error(w, r, respond.BadData, err)
		return
	}
	httputil.CompressionHandler{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &sqlOutput{w: w, begin: func() {
			httputil.SetCORS(w, s.cors, r)
			w.Header().Set("Content-Type", sqlHeader(q.Format))
		}}
		err := s.sql.SQL(r.Context(), q, out)
		if err == nil {
			err = out.flush()
		}
		if err == nil {
			return
		}
		if !out.Reset() { // the client must notice that the result is incomplete
			s.logger.Warn("a result of SQL ended early", "err", err)
			panic(http.ErrAbortHandler)
		}
		if respond.Bad(err) != nil {
			s.respond.Error(w, r, respond.BadData, err)
			return
		}
		s.respond.StorageError(w, r, err)
	})}.ServeHTTP(w, r)
}

// sqlQuery reads the statement of a request. The request that it returns carries the time of as_of.
func (s *server) sqlQuery(r *http.Request) (q request.Statement, _ *http.Request, err error) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Method == http.MethodPost && media == "application/json" {
		var body struct {
			Query    string          `json:"query"`
			Params   json.RawMessage `json:"params"`
			Format   string          `json:"format"`
			AsOf     string          `json:"as_of"`
			Snapshot json.RawMessage `json:"snapshot"`
		}
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		if err := dec.Decode(&body); err != nil {
			return q, r, fmt.Errorf("read the body as a JSON object with query, params, format, as_of and snapshot: %w", err)
		}
		if body.AsOf != "" {
			t, err := timeparam.Parse(body.AsOf)
			if err != nil {
				return q, r, invalid(asOfParam, err)
			}
			r = r.WithContext(request.WithAsOf(r.Context(), t))
		}
		if err := s.settings.Expressions.Check(body.Query); err != nil { // as bounded checks forms
			return q, r, err
		}
		q = request.Statement{Text: body.Query, Params: body.Params, Format: body.Format, Snapshot: body.Snapshot}
	} else {
		q = request.Statement{Text: r.FormValue("query"), Format: r.FormValue("format")}
		if p := r.FormValue("params"); p != "" {
			q.Params = json.RawMessage(p)
		}
		if v := r.FormValue("snapshot"); v != "" {
			q.Snapshot = json.RawMessage(v)
		}
	}
	q.Expressions = s.settings.Expressions
	if q.Format == "" {
		q.Format = r.URL.Query().Get("format")
	}
	switch {
	case q.Text == "":
		return q, r, respond.BadRequest("parameter \"query\" is missing")
	case q.Format == "":
		q.Format = acceptedFormat(r.Header.Values("Accept"))
	case sqlHeader(q.Format) == "":
		return q, r, respond.BadRequest(fmt.Sprintf("invalid parameter \"format\": want json, csv, arrow or parquet, got %q", q.Format))
	}
	return q, r, nil
}

// sqlHeader returns the Content-Type of a format, "" if there is no such format.
func sqlHeader(format string) string {
	for _, t := range sqlTypes {
		if t.format == format {
			return t.header
		}
	}
	return ""
}

// acceptedFormat returns the first format that Accept names, or JSON.
func acceptedFormat(accept []string) string {
	for _, part := range strings.Split(strings.Join(accept, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || params["q"] == "0" {
			continue
		}
		for _, t := range sqlTypes {
			if t.media == media {
				return t.format
			}
		}
	}
	return sqlTypes[0].format
}

// sqlBuffer is how much of a result is held back: until then, an error is still answered as such.
const sqlBuffer = 256 << 10

// sqlOutput is the result of a statement on its way to a client.
type sqlOutput struct {
	w     http.ResponseWriter
	begin func() // sets the headers
	buf   bytes.Buffer
	sent  bool
}

// Write implements request.Output.
func (o *sqlOutput) Write(p []byte) (int, error) {
	if o.buf.Len()+len(p) > sqlBuffer {
		if err := o.flush(); err != nil {
			return 0, err
		}
		return o.w.Write(p)
	}
	return o.buf.Write(p)
}

// flush sends what is held back.
func (o *sqlOutput) flush() error {
	if !o.sent {
		o.begin()
		o.sent = true
	}
	_, err := o.buf.WriteTo(o.w)
	if err != nil {
		return errors.Join(err, context.Canceled) // the client is gone
	}
	return nil
}

// Reset implements request.Output.
func (o *sqlOutput) Reset() bool {
	o.buf.Reset()
	return !o.sent
}
