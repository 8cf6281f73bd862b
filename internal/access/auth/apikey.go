package auth

import (
	"net/http"
	"slices"
)

// The places where Datadog's agent and clients put their API key: the header, and the query
// parameter of older clients.
const (
	apiKeyHeader    = "DD-API-KEY"
	apiKeyParameter = "api_key"
)

// APIKey returns a handler for requests of Datadog's senders, whose API key is a token. It passes
// them to next, which Protect has made, with the key as the token of the Authorization header. A
// request with that header itself keeps it. The key does not reach next.
func (g *Guard) APIKey(next http.Handler) http.Handler {
	if g == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		values := slices.Concat(r.Header.Values(apiKeyHeader), query[apiKeyParameter])
		if len(values) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Del(apiKeyHeader)
		if query.Has(apiKeyParameter) {
			query.Del(apiKeyParameter)
			r.URL.RawQuery = query.Encode()
			r.RequestURI = r.URL.RequestURI()
		}
		if len(r.Header.Values("Authorization")) == 0 {
			for i, v := range values {
				if i == 0 || v != values[0] { // clients that send both send the same
					r.Header.Add("Authorization", "Bearer "+v)
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}
