package auth

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// refusal is the answer to a request that does not reach its handler.
type refusal struct {
	result string // label value of the metric
	status int
	err    error
}

// errorTypes are the error types of JSON answers: Prometheus' own, and two further ones.
var errorTypes = map[int]string{
	http.StatusBadRequest:         "bad_data",
	http.StatusUnauthorized:       "unauthorized",
	http.StatusForbidden:          "forbidden",
	http.StatusServiceUnavailable: "unavailable",
}

// write writes the answer. Its text contains no secrets; only the answer to a request with a known
// token or principal names its tenants. A script's request gets no Basic challenge, to which
// browsers respond with a dialog of their own: the page asks for the token itself.
func (f *refusal) write(w http.ResponseWriter, r *http.Request, access Access) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	switch f.status {
	case http.StatusUnauthorized:
		h.Add("WWW-Authenticate", `Bearer realm="promlake"`)
		if mode := r.Header.Get("Sec-Fetch-Mode"); mode == "" || mode == "navigate" {
			h.Add("WWW-Authenticate", `Basic realm="promlake"`)
		}
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(int(firstPause/time.Second)))
	}
	text := f.err.Error()
	if f.result == "unavailable" {
		// the log has the reason, which clients must not see
		text = errUnavailable.Error() + ", try again"
	}
	if access == Write {
		http.Error(w, text, f.status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	// Errors mean that the client closed the connection.
	_ = json.NewEncoder(w).Encode(struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
	}{"error", errorTypes[f.status], text})
}

// preflight returns the request with only the fields that a preflight needs.
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
