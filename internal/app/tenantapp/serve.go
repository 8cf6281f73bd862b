package tenantapp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/auth"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/telemetry"
)

// Path is where a server describes the tenants of its store.
const Path = "/api/v1/status/tenants"

// Served are the settings of the route. The tags are those of package settings.
type Served struct {
	MaxTenants int `name:"web.max-tenants" default:"1000" min:"1" help:"Tenants that one request for /api/v1/status/tenants may describe; each takes two requests to the store." when:"Raise it if the page cannot list the tenants and the requests are worth it."`
}

// stage implements process.Stage.
type stage struct {
	process.Idle
	limit   int
	store   objstore.Store
	turn    sync.Mutex // held while the tenants are read
	results *prometheus.CounterVec
}

// New returns the builder of a stage that answers GET Path with the Overview of the store:
//
//	200   the tenants
//	400   there are more of them than the settings allow
//	409   another such request is running
//	503   the store does not answer
//
// A request ends when its client goes away. The stage counts in the process's registry:
//
//	promlake_tenants_requests_total{result}   ok, limit, busy, failed
func New(s Served) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		return &stage{
			limit: s.MaxTenants, store: p.Store,
			results: telemetry.Registered(p.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
				Name: "promlake_tenants_requests_total",
				Help: "Requests to describe all tenants by result: ok, limit (more tenants than --web.max-tenants), busy (another one ran) and failed (the store did not answer).",
			}, []string{"result"})),
		}, nil
	}
}

// Routes implements process.Stage. The answer concerns all tenants, so it is for operators.
func (s *stage) Routes() []process.Route {
	return []process.Route{{Pattern: "GET " + Path, Name: Path, Access: auth.Operate, Handler: s}}
}

// reply has the form of the Prometheus API's answers.
type reply struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
	Data      *data  `json:"data,omitempty"`
}

type data struct {
	Tenants []Stored `json:"tenants"`
}

// ServeHTTP describes the tenants.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, result, body := s.answer(r.Context())
	s.results.WithLabelValues(result).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(body)
}

func (s *stage) answer(ctx context.Context) (status int, result string, body reply) {
	if !s.turn.TryLock() {
		return http.StatusConflict, "busy", reply{Status: "error", ErrorType: "unavailable", Error: "another request reads the tenants: try again when it is over"}
	}
	defer s.turn.Unlock()
	tenants, err := Overview(ctx, s.store, s.limit)
	if tooMany, ok := errors.AsType[*TooManyError](err); ok {
		return http.StatusBadRequest, "limit", reply{Status: "error", ErrorType: "bad_data", Error: tooMany.Error()}
	}
	if err != nil {
		return http.StatusServiceUnavailable, "failed", reply{Status: "error", ErrorType: "unavailable", Error: err.Error()}
	}
	return http.StatusOK, "ok", reply{Status: "success", Data: &data{tenants}}
}
