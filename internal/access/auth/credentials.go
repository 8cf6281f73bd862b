package auth

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

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
