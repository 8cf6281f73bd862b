package ingest

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/opentsdb"
)

// OpenTSDBHandler serves POST requests to OpenTSDB's /api/put with its parameters summary and
// details. Errors have OpenTSDB's form.
func (s *Stage) OpenTSDBHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		summary, details := query.Has("summary"), query.Has("details")
		points, refused := 0, []putOffence{}
		p := wireFormat{form: "json", decode: func(msg []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (b *remotewrite.Batch, err error) {
			b, points, err = opentsdb.Decode(msg, g, rules, room)
			if err == nil && len(b.Offences) > 0 {
				refused = putOffences(msg, b.Offences)
			}
			return b, err
		}}
		if details {
			p.list = maxOffences
		}
		_, err := s.write(w, r, p)
		code := s.answered(w, err, "opentsdb")
		if err == nil && !summary && !details {
			w.WriteHeader(code)
			return
		}
		var answer any
		if err == nil || is[*errPartial](err) && (summary || details) {
			failed := 0
			if partial, ok := errors.AsType[*errPartial](err); ok {
				failed = partial.rejected
			} else {
				code = http.StatusOK
			}
			// Of the data points that were not stored, it describes the first maxOffences.
			stored := map[string]any{"failed": failed, "success": points - failed}
			if details {
				stored["errors"] = refused
			}
			answer = stored
		} else {
			answer = map[string]any{"error": map[string]any{"code": code, "message": s.public(r, err, code)}}
		}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer) // a client that went away needs no answer
	})
}
