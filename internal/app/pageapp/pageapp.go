// Package pageapp fits the page into a process: the routes that a browser asks first, and the
// dashboards that the page shows.
package pageapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/prometheus/prometheus/util/httputil"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/web"
)

// Settings of the page. The tags are those of package settings.
type Settings struct {
	Dashboards     string   `name:"web.dashboards" basic:"" placeholder:"DIR" help:"Folder of Grafana dashboards (JSON files) that the page lists beside its own. Default: none." when:"Set it to see your dashboards without Grafana."`
	FrameAncestors []string `name:"web.frame-ancestors" placeholder:"ORIGIN" help:"Origins whose pages may embed a panel of the page, such as https://wiki.example or https://*.example; self is the origin of this server. Default: none." when:"Set it to show panels in a wiki."`
}

// origin is a source of the directive frame-ancestors.
var origin = regexp.MustCompile(`^(self|https?://(\*\.)?[a-zA-Z0-9.-]+(:(\d+|\*))?)$`)

// ancestors returns the sources of the Content-Security-Policy, or an error that names the flag.
func (s Settings) ancestors() ([]string, error) {
	var out []string
	for _, o := range s.FrameAncestors {
		if !origin.MatchString(o) {
			return nil, fmt.Errorf("web.frame-ancestors: want self, or an origin such as https://wiki.example, got %q", o)
		}
		if o == "self" {
			o = "'self'"
		}
		out = append(out, o)
	}
	return out, nil
}

// stage implements process.Stage.
type stage struct {
	process.Idle
	page   http.Handler
	folder Folder
}

// New returns the builder of the stage.
func New(s Settings) process.Builder {
	return func(context.Context, process.Parts) (process.Stage, error) {
		ancestors, err := s.ancestors()
		if err != nil {
			return nil, err
		}
		folder, err := Open(s.Dashboards)
		if err != nil {
			return nil, fmt.Errorf("web.dashboards: %w", err)
		}
		return stage{page: web.Handler(ancestors...), folder: folder}, nil
	}
}

// operations is where /dashboards leads: relative, so that it works behind a proxy that removes a
// prefix.
const operations = "./#/dashboards?dash=promlake-operations"

// Routes implements process.Stage. The page holds no data, so it needs no token; it asks for one
// when the API refuses its requests. The dashboards of a folder name what they show.
func (s stage) Routes() []process.Route {
	shipped := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", operations)
		w.WriteHeader(http.StatusFound)
	})
	list := httputil.CompressionHandler{Handler: ListHandler(s.folder)}
	read := httputil.CompressionHandler{Handler: ReadHandler(s.folder)}
	return []process.Route{
		{Pattern: "GET /{$}", Name: "/", Access: auth.Public, Handler: s.page},
		{Pattern: "GET /assets/{file}", Name: "/assets", Access: auth.Public, Handler: s.page},
		{Pattern: "GET /dashboards", Name: "/dashboards", Access: auth.Public, Handler: shipped},
		{Pattern: "GET /api/v1/dashboards", Name: "/api/v1/dashboards", Access: auth.Read, Handler: list},
		{Pattern: "GET /api/v1/dashboards/{name...}", Name: "/api/v1/dashboards", Access: auth.Read, Handler: read},
	}
}

// Close implements process.Stage.
func (s stage) Close() error { return s.folder.Close() }

// ListHandler answers with the entries of a folder.
func ListHandler(f Folder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entries, err := f.List()
		respond(w, entries, err)
	})
}

// ReadHandler answers with the dashboard that the value "name" of the request's path names.
func ReadHandler(f Folder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := f.Read(r.PathValue("name"))
		respond(w, json.RawMessage(content), err)
	})
}

func respond(w http.ResponseWriter, data any, err error) {
	switch {
	case err == nil:
		process.Reply{Status: "success", Data: data}.Send(w, http.StatusOK)
	case errors.Is(err, ErrNotFound):
		process.Reply{Status: "error", ErrorType: "not_found", Error: err.Error()}.Send(w, http.StatusNotFound)
	default:
		process.Reply{Status: "error", ErrorType: "internal", Error: err.Error()}.Send(w, http.StatusInternalServerError)
	}
}
