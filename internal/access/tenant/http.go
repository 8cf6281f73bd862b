package tenant

import (
	"fmt"
	"net/http"
)

// FromRequest returns the tenant in r's Header, or Default if there is none. A request with several
// such headers is an error: a proxy's header cannot be distinguished from the client's.
func FromRequest(r *http.Request) (string, error) {
	switch values := r.Header.Values(Header); len(values) {
	case 0:
		return Default, nil
	case 1:
		return Parse(values[0])
	default:
		return "", fmt.Errorf("request carries %d %s headers, at most 1 is allowed", len(values), Header)
	}
}
