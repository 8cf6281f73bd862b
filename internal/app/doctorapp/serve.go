package doctorapp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/auth"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/tenant"
)

// Path is where a server examines the store of a tenant.
const Path = "/api/v1/status/doctor"

// Served are the settings of the route. The tags are those of package settings.
type Served struct {
	MaxObjects int `name:"web.doctor-max-objects" default:"1000" min:"1" help:"Live objects of a tenant that one request for /api/v1/status/doctor may examine; each takes a request to the store." when:"Raise it if the page cannot examine a tenant and the requests are worth it; promlake doctor has no limit."`
}

// stage implements process.Stage.
type stage struct {
	process.Idle
	settings Settings
	store    objstore.Store
	turn     sync.Mutex // held while an examination runs
	results  *prometheus.CounterVec
}

// New returns the builder of a stage that answers GET Path with the Report of the request's tenant,
// as promlake doctor has it without --verify:
//
//	200   the report
//	400   the tenant has more objects than the settings allow
//	409   another examination runs
//	503   the store does not answer
//
// An examination ends when its client goes away. The stage counts in the process's registry:
//
//	promlake_doctor_requests_total{result}   ok, damaged, limit, busy, failed
func New(s Served) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		return &stage{
			settings: Settings{MaxObjects: s.MaxObjects}, store: p.Store,
			results: promauto.With(p.Registry).NewCounterVec(prometheus.CounterOpts{
				Name: "promlake_doctor_requests_total",
				Help: "Requests to examine a tenant by result: ok, damaged, limit (more objects than --web.doctor-max-objects), busy (another examination ran) and failed (the store did not answer).",
			}, []string{"result"}),
		}, nil
	}
}

// Routes implements process.Stage. An examination reads all that a tenant has, so only operators
// start one.
func (s *stage) Routes() []process.Route {
	return []process.Route{{Pattern: "GET " + Path, Name: Path, Access: auth.Operate, Handler: s}}
}

// reply has the form of the Prometheus API's answers.
type reply struct {
	Status    string  `json:"status"`
	ErrorType string  `json:"errorType,omitempty"`
	Error     string  `json:"error,omitempty"`
	Data      *Report `json:"data,omitempty"`
}

// ServeHTTP examines the request's tenant.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, result, body := s.answer(r)
	s.results.WithLabelValues(result).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(body)
}

func (s *stage) answer(r *http.Request) (status int, result string, body reply) {
	settings := s.settings
	var err error
	if settings.Tenant, err = tenant.FromRequest(r); err != nil {
		return http.StatusBadRequest, "failed", reply{Status: "error", ErrorType: "bad_data", Error: err.Error()}
	}
	if !s.turn.TryLock() {
		return http.StatusConflict, "busy", reply{Status: "error", ErrorType: "unavailable", Error: "another examination of the store is running: try again when it is over"}
	}
	defer s.turn.Unlock()
	report, err := Examine(r.Context(), s.store, settings)
	if tooMany, ok := errors.AsType[*TooManyError](err); ok {
		return http.StatusBadRequest, "limit", reply{Status: "error", ErrorType: "bad_data", Error: tooMany.Error()}
	}
	if err != nil {
		return http.StatusServiceUnavailable, "failed", reply{Status: "error", ErrorType: "unavailable", Error: err.Error()}
	}
	if !report.Healthy() {
		return http.StatusOK, "damaged", reply{Status: "success", Data: &report}
	}
	return http.StatusOK, "ok", reply{Status: "success", Data: &report}
}
