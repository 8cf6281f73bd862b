package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// TokenPrefix is the prefix of every token of NewToken, by which scanners for leaked secrets
// recognize tokens.
const TokenPrefix = "pl_"

// tokenBytes is the number of random bytes of a token. They cannot be guessed, so documents need no
// slow hash.
const tokenBytes = 32

// NewToken returns a fresh random token: TokenPrefix and 32 bytes in base64url without padding.
func NewToken() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// SumOf returns the SHA-256 of a token in lower-case hexadecimal, as in documents.
func SumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// isSum reports whether text has the form of a sum, in any case.
func isSum(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size
}

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

var (
	errAbsent    = errors.New("this server requires a token: send Authorization: Bearer TOKEN, or Basic with the token as the password")
	errMalformed = errors.New("the Authorization header is malformed: want Bearer TOKEN, or Basic with the token as the password")
	errUnknown   = errors.New("the token is not known")
)

// credentials returns the token in the header: that of `Bearer TOKEN`, or of `Token TOKEN` as
// InfluxDB's clients write it, or the password of Basic, whose user name is ignored. Two headers
// are malformed, because it is unclear which of them holds the token.
func credentials(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) == 0 {
		return "", errAbsent
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	token := strings.TrimSpace(rest)
	if strings.EqualFold(scheme, "Basic") {
		raw, err := base64.StdEncoding.DecodeString(token)
		if err != nil {
			return "", errMalformed
		}
		_, password, ok := strings.Cut(string(raw), ":")
		if !ok {
			return "", errMalformed
		}
		token = password
	} else if !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(scheme, "Token") {
		return "", errMalformed
	}
	if len(values) > 1 || token == "" {
		return "", errMalformed
	}
	return token, nil
}
