package tenantapp

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// Path is where a server describes the tenants of its store.
const Path = "/api/v1/status/tenants"

// Served are the settings of the route. The tags are those of package settings.
type Served struct {
	MaxTenants int `name:"web.max-tenants" default:"1000" min:"1" help:"Tenants that one request for /api/v1/status/tenants may describe; each takes two requests to the store." when:"Raise it if the page cannot list the tenants and the requests are worth it."`
}

// New returns the builder of a stage that answers GET Path, to operators because the answer
// concerns all tenants, with what the store has of each:
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
		results := telemetry.Registered(p.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "promlake_tenants_requests_total",
			Help: "Requests to describe all tenants by result: ok, limit (more tenants than --web.max-tenants), busy (another one ran) and failed (the store did not answer).",
		}, []string{"result"}))
		return process.NewExclusive(Path, "another request reads the tenants: try again when it is over", results, func(r *http.Request) (any, string, error) {
			tenants, err := overview(r.Context(), p.Store, s.MaxTenants)
			if tooMany, ok := errors.AsType[*TooManyError](err); ok {
				return nil, "limit", tooMany
			}
			if err != nil {
				return nil, "", err
			}
			return data{tenants}, "ok", nil
		}), nil
	}
}

type data struct {
	Tenants []Stored `json:"tenants"`
}
