package pageapp

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
)

// answer is the body of Prometheus' HTTP API
// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview).
type answer struct {
	Status    string `json:"status"`
	Data      any    `json:"data,omitempty"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
}

// ListHandler answers with the entries of a folder.
func ListHandler(f Folder, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entries, err := f.List()
		respond(w, entries, err, logger)
	})
}

// ReadHandler answers with the dashboard that the value "name" of the request's path names.
func ReadHandler(f Folder, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := f.Read(r.PathValue("name"))
		respond(w, json.RawMessage(content), err, logger)
	})
}

func respond(w http.ResponseWriter, data any, err error, logger *slog.Logger) {
	body, code := answer{Status: "success", Data: data}, http.StatusOK
	switch {
	case errors.Is(err, ErrNotFound):
		body, code = answer{Status: "error", ErrorType: "not_found", Error: err.Error()}, http.StatusNotFound
	case err != nil:
		body, code = answer{Status: "error", ErrorType: "internal", Error: err.Error()}, http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		logger.Debug("a list of dashboards was not sent", "err", err)
	}
}
