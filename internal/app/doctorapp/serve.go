package doctorapp

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
)

// Path is where a server examines the store of a tenant.
const Path = "/api/v1/status/doctor"

// Served are the settings of the route. The tags are those of package settings.
type Served struct {
	MaxObjects int `name:"web.doctor-max-objects" default:"1000" min:"1" help:"Live objects of a tenant that one request for /api/v1/status/doctor may examine; each takes a request to the store." when:"Raise it if the page cannot examine a tenant and the requests are worth it; promlake doctor has no limit."`
}

// New returns the builder of a stage that answers GET Path with the Report of the request's tenant,
// as promlake doctor has it without --verify. An examination reads all that a tenant has, so only
// operators start one:
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
		results := promauto.With(p.Registry).NewCounterVec(prometheus.CounterOpts{
			Name: "promlake_doctor_requests_total",
			Help: "Requests to examine a tenant by result: ok, damaged, limit (more objects than --web.doctor-max-objects), busy (another examination ran) and failed (the store did not answer).",
		}, []string{"result"})
		return process.NewExclusive(Path, "another examination of the store is running: try again when it is over", results, func(r *http.Request) (any, string, error) {
			id, err := tenant.FromRequest(r)
			if err != nil {
				return nil, "failed", err
			}
			report, err := Examine(r.Context(), p.Store, Settings{Tenant: id, MaxObjects: s.MaxObjects})
			if tooMany, ok := errors.AsType[*TooManyError](err); ok {
				return nil, "limit", tooMany
			}
			switch {
			case err != nil:
				return nil, "", err
			case !report.Healthy():
				return &report, "damaged", nil
			default:
				return &report, "ok", nil
			}
		}), nil
	}
}
