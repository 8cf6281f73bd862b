package auth

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
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

// Listed is what List reports of an entry. It does not reveal a token.
type Listed struct {
	ID        string   `json:"id,omitempty"`        // the first digits of a token's SHA-256, to find its entry
	Principal string   `json:"principal,omitempty"` // ARN, of an entry without a token
	Tenants   []string `json:"tenants"`             // names, or only AnyTenant
	Access    []string `json:"access"`
	Comment   string   `json:"comment,omitempty"`
}

// idDigits is the length of an ID.
const idDigits = 8

// id is how List and Caller name the entry.
func (e Entry) id() string { return cmp.Or(e.SHA256[:min(idDigits, len(e.SHA256))], e.Principal) }

// List returns a handler that lists the valid tokens and principals in the form of the Prometheus
// API:
//
//	{"status":"success","data":{"required":true,"tokens":[…]}}
//
// They are sorted by tenants, access and comment. Without a document of tokens, required is false.
// A document that cannot be read is answered with 503.
func (g *Guard) List() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out struct {
			Status string `json:"status"`
			Data   struct {
				Required bool     `json:"required"`
				Tokens   []Listed `json:"tokens"`
			} `json:"data"`
		}
		out.Status, out.Data.Tokens = "success", []Listed{}
		if g != nil {
			grants, err := g.keys.all(r.Context(), nil)
			if err != nil {
				(&refusal{"unavailable", http.StatusServiceUnavailable, err}).write(w, r, Operate)
				return
			}
			out.Data.Required = true
			for _, granted := range grants {
				e := granted.entry
				out.Data.Tokens = append(out.Data.Tokens, Listed{ID: e.SHA256[:min(idDigits, len(e.SHA256))], Principal: e.Principal, Tenants: e.Tenants, Access: e.Access, Comment: e.Comment})
			}
			slices.SortFunc(out.Data.Tokens, func(a, b Listed) int {
				return cmp.Or(slices.Compare(a.Tenants, b.Tenants), slices.Compare(a.Access, b.Access), strings.Compare(a.Comment, b.Comment), strings.Compare(a.ID+a.Principal, b.ID+b.Principal))
			})
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		// A client that went away needs no answer.
		_ = json.NewEncoder(w).Encode(out)
	})
}
