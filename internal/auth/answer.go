package auth

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// refusal is why a request does not reach its handler.
type refusal struct {
	result string // as metrics count it
	status int
	err    error
}

// errorTypes are those of the JSON answers: Prometheus' own, and two that it has no use for.
var errorTypes = map[int]string{
	http.StatusBadRequest:         "bad_data",
	http.StatusUnauthorized:       "unauthorized",
	http.StatusForbidden:          "forbidden",
	http.StatusServiceUnavailable: "unavailable",
}

// write answers. The reasons name no secrets; which tenants a token has is told only to those who
// have the token.
func (f *refusal) write(w http.ResponseWriter, access Access) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	switch f.status {
	case http.StatusUnauthorized:
		h.Add("WWW-Authenticate", `Bearer realm="promlake"`)
		h.Add("WWW-Authenticate", `Basic realm="promlake"`)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(int(firstPause/time.Second)))
	}
	text := f.err.Error()
	if f.result == "unavailable" {
		text = errUnavailable.Error() + ", try again" // why is in the log, and not for strangers
	}
	if access == Write {
		http.Error(w, text, f.status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
	}{"error", errorTypes[f.status], text})
}

// isPreflight reports whether a browser asks what a page of another origin may send (the Fetch
// standard, "CORS-preflight request").
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight is the request with nothing but what a preflight asks.
func preflight(r *http.Request) *http.Request {
	q := r.Clone(r.Context())
	q.Body, q.ContentLength, q.URL.RawQuery = http.NoBody, 0, ""
	q.RequestURI = q.URL.RequestURI()
	q.Header = http.Header{}
	for _, name := range []string{"Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"} {
		q.Header[name] = r.Header[name]
	}
	return q
}
