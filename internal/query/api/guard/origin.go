package guard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/query/request"
)

// maxSource is the longest name or title of a source, in bytes.
const maxSource = 200

// originOf returns the origin of a request for a path, without its text, and the request with that
// in its context.
func originOf(path string, r *http.Request) (*request.Origin, *http.Request) {
	o := &request.Origin{Path: path, Remote: r.RemoteAddr, Source: sourceOf(r.Header)}
	o.Token, o.Allowance = auth.Caller(r.Context())
	of := request.From(r.Context())
	of.Origin = o
	return o, r.WithContext(request.With(r.Context(), of))
}

// sourceOf returns what sends a request by its headers. Those of dashboards and alert rules are
// Grafana's (pkg/services/pluginsintegration/clientmiddleware, and the evaluation of its rules);
// titles are encoded as in the path of a URL. Whoever may query may send any of them.
func sourceOf(h http.Header) request.Source {
	if text := h.Get(request.SourceHeader); text != "" {
		var s request.Source
		if json.Unmarshal([]byte(text), &s) == nil && slices.Contains(request.Kinds, s.Kind) && len(s.Name) <= maxSource && len(s.Title) <= maxSource {
			return s
		}
	}
	name := func(name string) string { return h.Get(name)[:min(maxSource, len(h.Get(name)))] }
	title := func(name string) string {
		text := h.Get(name)
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return strings.ToValidUTF8(text[:min(maxSource, len(text))], "")
	}
	switch {
	case h.Get("X-Rule-Uid") != "":
		return request.Source{Kind: request.AlertRule, Name: name("X-Rule-Uid"), Title: title("X-Rule-Name")}
	case h.Get("X-Dashboard-Uid") != "":
		return request.Source{Kind: request.Dashboard, Name: name("X-Dashboard-Uid"), Title: title("X-Dashboard-Title")}
	}
	program, _, _ := strings.Cut(name("User-Agent"), "/")
	program, _, _ = strings.Cut(program, " ")
	switch program {
	case "Mozilla":
		program = "browser"
	case "":
		program = "unknown"
	}
	return request.Source{Kind: request.Client, Name: program}
}
