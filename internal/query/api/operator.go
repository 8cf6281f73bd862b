package api

import (
	"net/http"
	"slices"
	"strings"
)

// operatorPaths are the paths below /api/v1 that describe the process and its machine: its flags,
// which may name other tenants and locations of secrets, its working directory and its host.
var operatorPaths = []string{"/status/config", "/status/flags", "/status/runtimeinfo"}

// OperatorPatterns returns the patterns of New's handler that only operators may request. They are
// more specific than those of Patterns, so http.ServeMux prefers them. WithoutOperator removes the
// same paths from the handler of Patterns.
func OperatorPatterns() []string {
	var out []string
	for _, prefix := range []string{"", mimirPrefix} {
		for _, path := range operatorPaths {
			out = append(out, prefix+apiPath+path)
		}
	}
	return out
}

// WithoutOperator returns h with 404 for the paths of OperatorPatterns. Requests for them reach it
// if http.ServeMux does not match their pattern, as with /api/v1/status%2Fflags.
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
