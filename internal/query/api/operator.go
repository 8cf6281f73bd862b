package api

import (
	"net/http"
	"slices"
	"strings"
)

// operatorPaths are the paths below /api/v1 that describe the process and its machine: every flag,
// among them those that name other tenants and places of secrets, the working directory, the host.
var operatorPaths = []string{"/status/config", "/status/flags", "/status/runtimeinfo"}

// OperatorPatterns returns patterns of New's handler that are for operators. They are more specific
// than those of Patterns, for whose requests WithoutOperator takes the same paths out of the
// handler.
func OperatorPatterns() []string {
	var out []string
	for _, prefix := range []string{"", mimirPrefix} {
		for _, path := range operatorPaths {
			out = append(out, prefix+apiPath+path)
		}
	}
	return out
}

// WithoutOperator returns h without the paths of OperatorPatterns, which it answers with 404. A
// path reaches it that http.ServeMux does not recognise by its pattern, such as
// /api/v1/status%2Fflags.
func WithoutOperator(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, mimirPrefix), apiPath)
		if slices.Contains(operatorPaths, path) {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
