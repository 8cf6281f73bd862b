package flightsql

import (
	"encoding/base64"
	"strings"
)

// handshake is the call with which clients exchange a user and a password for a token.
const handshake = "/arrow.flight.protocol.FlightService/Handshake"

// tokenOf returns the token of a Bearer header, or the password of a Basic one.
func tokenOf(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "bearer":
		return rest, rest != ""
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(rest)
		if err != nil {
			return "", false
		}
		_, password, _ := strings.Cut(string(raw), ":")
		return password, password != ""
	}
	return "", false
}
