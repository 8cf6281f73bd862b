package flightsql

import (
	"encoding/base64"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// handshake is the call with which clients exchange a user and a password for a token.
const handshake = "/arrow.flight.protocol.FlightService/Handshake"

// shakeHands answers handshakes: the password is the token. Each later call is checked by itself.
func shakeHands(stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	token, ok := tokenOf(md.Get("authorization"))
	if !ok {
		return status.Error(codes.Unauthenticated, "the handshake has no password: give the token as the password, or send the header authorization: Bearer TOKEN")
	}
	return stream.SendHeader(metadata.Pairs("authorization", "Bearer "+token))
}

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
