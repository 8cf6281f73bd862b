// Package pageapp fits the page into a process: the routes that a browser asks first, and the
// dashboards that the page shows and saves.
package pageapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/util/httputil"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/web"
)

// Settings of the page. The tags are those of package settings.
type Settings struct {
	Dashboards     string   `name:"web.dashboards" basic:"" placeholder:"DIR" help:"Folder of Grafana dashboards (JSON files) that the page lists beside its own. Default: none." when:"Set it to see your dashboards without Grafana."`
	FrameAncestors []string `name:"web.frame-ancestors" placeholder:"ORIGIN" help:"Origins whose pages may embed a panel of the page, such as https://wiki.example or https://*.example; self is the origin of this server. Default: none." when:"Set it to show panels in a wiki."`
}

// origin is a source of the directive frame-ancestors.
var origin = regexp.MustCompile(`^(self|https?://(\*\.)?[a-zA-Z0-9.-]+(:(\d+|\*))?)$`)

// stage implements process.Stage.
type stage struct {
	process.Idle
	page       http.Handler
	folder     Folder
	dashboards []process.Route
}

// New returns the builder of the stage.
func New(s Settings) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		var ancestors []string // sources of the Content-Security-Policy
		for _, o := range s.FrameAncestors {
			if !origin.MatchString(o) {
				return nil, fmt.Errorf("web.frame-ancestors: want self, or an origin such as https://wiki.example, got %q", o)
			}
			if o == "self" {
				o = "'self'"
			}
			ancestors = append(ancestors, o)
		}
		folder, err := Open(s.Dashboards)
		if err != nil {
			return nil, fmt.Errorf("web.dashboards: %w", err)
		}
		return stage{page: web.Handler(ancestors...), folder: folder, dashboards: Routes(folder, p.Store, p.Registry, p.Logger)}, nil
	}
}

// operations is where /dashboards leads: relative, so that it works behind a proxy that removes a
// prefix.
const operations = "./#/dashboards?dash=promlake-operations"

// Routes implements process.Stage. The page holds no data, so it needs no token; it asks for one
// when the API refuses its requests. Dashboards name what they show.
func (s stage) Routes() []process.Route {
	shipped := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", operations)
		w.WriteHeader(http.StatusFound)
	})
	return append([]process.Route{
		{Pattern: "GET /{$}", Name: "/", Access: auth.Public, Handler: s.page},
		{Pattern: "GET /assets/{file}", Name: "/assets", Access: auth.Public, Handler: s.page},
		{Pattern: "GET /dashboards", Name: "/dashboards", Access: auth.Public, Handler: shipped},
	}, s.dashboards...)
}

// Close implements process.Stage.
func (s stage) Close() error { return s.folder.Close() }

// api answers requests for dashboards: the files of a folder, which all tenants see, and what each
// tenant saved. Names of files end in .json, and others do not.
type api struct {
	folder  Folder
	saved   Saved
	limited *prometheus.CounterVec
	log     *slog.Logger
}

// Routes returns the routes of the dashboards in a folder and a store. They count in reg:
//
//	promlake_dashboards_limited_total{limit}   dashboards, bytes, name
func Routes(folder Folder, store objstore.Store, reg prometheus.Registerer, log *slog.Logger) []process.Route {
	c := telemetry.Metrics{Registerer: reg, Prefix: "promlake_dashboards_"}.CountersOf("limited_total",
		"Dashboards that were not saved because of a limit: dashboards of a tenant, bytes of a dashboard, length of its name.", "limit", limitCount, limitBytes, limitName)
	a := api{folder, Saved{store}, c, log}
	const all, one = "/api/v1/dashboards", "/api/v1/dashboards/{name...}"
	return []process.Route{
		{Pattern: "GET " + all, Name: all, Access: auth.Read, Handler: httputil.CompressionHandler{Handler: a.handler(a.list)}},
		{Pattern: "GET " + one, Name: all, Access: auth.Read, Handler: httputil.CompressionHandler{Handler: a.handler(a.read)}},
		{Pattern: "PUT " + one, Name: all, Access: auth.Admin, Handler: a.handler(a.write)},
		{Pattern: "DELETE " + one, Name: all, Access: auth.Admin, Handler: a.handler(a.remove)},
	}
}

// list returns the entries of the folder and of the tenant.
func (a api) list(r *http.Request, tenant, _ string) (data any, version string, err error) {
	entries, err := a.folder.List()
	if err == nil {
		entries, err = a.saved.list(r.Context(), tenant, entries)
	}
	return entries, "", err
}

func (a api) read(r *http.Request, tenant, name string) (data any, version string, err error) {
	var content json.RawMessage
	if path.Ext(name) == ".json" {
		content, err = a.folder.Read(name)
	} else {
		content, version, err = a.saved.read(r.Context(), tenant, name)
	}
	return content, version, err
}

func (a api) write(r *http.Request, tenant, name string) (data any, version string, err error) {
	cond, err := condition(r.Header)
	if err != nil {
		return nil, "", err
	}
	content, err := io.ReadAll(io.LimitReader(r.Body, MaxSavedBytes+1))
	if err != nil {
		return nil, "", refuse(http.StatusBadRequest, "bad_data", "read the dashboard: %w", err)
	}
	if len(content) > MaxSavedBytes {
		return nil, "", limited(limitBytes, http.StatusRequestEntityTooLarge, "the dashboard has more than %d bytes", MaxSavedBytes)
	}
	version, err = a.saved.write(r.Context(), tenant, name, content, cond)
	return nil, version, err
}

func (a api) remove(r *http.Request, tenant, name string) (data any, version string, err error) {
	cond, err := condition(r.Header)
	if err == nil {
		err = a.saved.remove(r.Context(), tenant, name, cond)
	}
	return nil, "", err
}

// failure is an error with the status and the error type of its answer.
type failure struct {
	error
	status      int
	kind, limit string // limit is its name in metrics
}

func refuse(status int, kind, format string, args ...any) error {
	return &failure{error: fmt.Errorf(format, args...), status: status, kind: kind}
}

func limited(limit string, status int, format string, args ...any) error {
	return &failure{fmt.Errorf(format, args...), status, "limit", limit}
}

// handler answers with what f returns for the request's tenant and the name in its path.
func (a api) handler(f func(r *http.Request, tenant, name string) (data any, version string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var data any
		var version string
		id, err := tenant.FromRequest(r)
		if err != nil {
			err = refuse(http.StatusBadRequest, "bad_data", "%w", err)
		} else {
			data, version, err = f(r, id, r.PathValue("name"))
		}
		if version != "" {
			w.Header().Set("ETag", etag(version))
		}
		if err == nil {
			process.Reply{Status: "success", Data: data}.Send(w, http.StatusOK)
			return
		}
		refused := &failure{err, http.StatusInternalServerError, "internal", ""}
		if f, ok := errors.AsType[*failure](err); ok {
			refused = f
		} else if _, ok := errors.AsType[storeError](err); ok {
			a.log.Error("a request for dashboards failed", "path", r.URL.Path, "err", err)
			refused = &failure{errors.New("the store did not do it, try again; the server's log has the reason"), http.StatusServiceUnavailable, "unavailable", ""}
		} else if errors.Is(err, ErrNotFound) {
			refused = &failure{err, http.StatusNotFound, "not_found", ""}
		}
		if refused.limit != "" {
			a.limited.WithLabelValues(refused.limit).Inc()
		}
		if refused.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		process.Reply{Status: "error", ErrorType: refused.kind, Error: refused.Error()}.Send(w, refused.status)
	})
}
