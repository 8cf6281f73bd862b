package tenant

import (
	"fmt"
	"net/http"
)

// FromRequest returns the tenant that r's Header names, Default when there is none. A request that
// carries the header more than once is refused: of two names, the one that a proxy set cannot be
// told from the one that the client set.
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
