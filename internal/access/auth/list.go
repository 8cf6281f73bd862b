package auth

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

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
