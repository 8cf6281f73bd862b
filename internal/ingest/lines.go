package ingest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/csvlines"
	"github.com/promlake/promlake/internal/senders/jsonlines"
)

// JSONLinesHandler serves POST requests with lines of JSON in VictoriaMetrics' format.
func (s *Stage) JSONLinesHandler() http.Handler {
	return s.importer("json", func(r *http.Request) (p wireFormat, err error) {
		if p.read, err = s.packedReader(r.Header, "json"); err != nil {
			return p, err
		}
		p.decode = func(msg []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return jsonlines.Decode(jsonlines.Request{Body: msg}, g, rules, room)
		}
		return p, nil
	})
}

// CSVHandler serves POST requests with CSV, whose columns the parameter format describes as with
// VictoriaMetrics.
func (s *Stage) CSVHandler() http.Handler {
	return s.importer("csv", func(r *http.Request) (p wireFormat, err error) {
		if p.read, err = s.textReader(r.Header); err != nil {
			return p, err
		}
		format, err := csvlines.ParseFormat(r.URL.Query().Get("format"))
		if err != nil {
			return p, errParameter{fmt.Errorf("format: %w", err)}
		}
		p.decode = func(msg []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return csvlines.Decode(csvlines.Request{Body: msg, Format: format, Time: came.UnixMilli()}, g, rules, room)
		}
		return p, nil
	})
}
