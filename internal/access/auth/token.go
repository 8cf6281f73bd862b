package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
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

// Sum is the SHA-256 of a token.
type Sum [sha256.Size]byte

// SumOf returns the token's sum.
func SumOf(token string) Sum { return sha256.Sum256([]byte(token)) }

// String returns the sum in lower-case hexadecimal, as in documents.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It takes 64 hexadecimal digits.
func (s *Sum) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(s) {
		return fmt.Errorf("sha256: want %d hexadecimal digits, got %d bytes of text", 2*len(s), len(text))
	}
	copy(s[:], b)
	return nil
}
