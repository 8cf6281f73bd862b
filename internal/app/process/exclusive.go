package process

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/auth"
)

// ExclusiveWork answers a request with data and the name of the result for the counter. An error is
// answered with status 400 if result names it, and otherwise with 503, as "failed". Its context
// ends when the client goes away.
type ExclusiveWork func(r *http.Request) (data any, result string, err error)

// Exclusive is a stage that does nothing but serve ExclusiveWork at a path, to operators.
type Exclusive struct {
	Idle
	path    string
	busy    string // the answer to others while ExclusiveWork runs
	work    ExclusiveWork
	results *prometheus.CounterVec // by the label result; a request that found ExclusiveWork running is "busy"
	turn    sync.Mutex             // held while ExclusiveWork runs
}

// NewExclusive returns a stage that answers GET requests at path.
func NewExclusive(path, busy string, results *prometheus.CounterVec, work ExclusiveWork) *Exclusive {
	return &Exclusive{path: path, busy: busy, work: work, results: results}
}

// Routes implements Exclusive.
func (s *Exclusive) Routes() []Route {
	return []Route{{Pattern: "GET " + s.path, Name: s.path, Access: auth.Operate, Handler: s}}
}

// reply has the form of the Prometheus API's answers.
type reply struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
	Data      any    `json:"data,omitempty"`
}

// ServeHTTP does the work.
func (s *Exclusive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, result, body := s.answer(r)
	s.results.WithLabelValues(result).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Exclusive) answer(r *http.Request) (status int, result string, body reply) {
	if !s.turn.TryLock() {
		return http.StatusConflict, "busy", reply{Status: "error", ErrorType: "unavailable", Error: s.busy}
	}
	defer s.turn.Unlock()
	data, result, err := s.work(r)
	switch {
	case err == nil:
		return http.StatusOK, result, reply{Status: "success", Data: data}
	case result != "":
		return http.StatusBadRequest, result, reply{Status: "error", ErrorType: "bad_data", Error: err.Error()}
	default:
		return http.StatusServiceUnavailable, "failed", reply{Status: "error", ErrorType: "unavailable", Error: err.Error()}
	}
}
