package ingest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/csvlines"
	"github.com/promlake/promlake/internal/jsonlines"
	"github.com/promlake/promlake/internal/remotewrite"
)

// JSONLinesHandler serves POST requests with lines of JSON in VictoriaMetrics' format. Its
// parameter is extra_label=name=value, repeatable.
func (s *Stage) JSONLinesHandler() http.Handler {
	return s.importer("json", func(r *http.Request) (p wireFormat, err error) {
		if p.read, err = s.packedReader(r.Header, "json"); err != nil {
			return p, err
		}
		extra, err := extraLabels(r.URL.Query())
		if err != nil {
			return p, err
		}
		p.decode = func(msg []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return jsonlines.Decode(jsonlines.Request{Body: msg, Labels: extra}, g, rules, room)
		}
		return p, nil
	})
}

// CSVHandler serves POST requests with CSV. Its parameters are VictoriaMetrics': format, and
// extra_label=name=value, repeatable.
func (s *Stage) CSVHandler() http.Handler {
	return s.importer("csv", func(r *http.Request) (p wireFormat, err error) {
		if p.read, err = s.textReader(r.Header); err != nil {
			return p, err
		}
		query := r.URL.Query()
		extra, err := extraLabels(query)
		if err != nil {
			return p, err
		}
		format, err := csvlines.ParseFormat(query.Get("format"))
		if err != nil {
			return p, errParameter{fmt.Errorf("format: %w", err)}
		}
		p.decode = func(msg []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return csvlines.Decode(csvlines.Request{Body: msg, Format: format, Labels: extra, Time: came.UnixMilli()}, g, rules, room)
		}
		return p, nil
	})
}
