package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// TokenPrefix begins every token that NewToken makes, so that scanners for leaked secrets know one
// when they see it.
const TokenPrefix = "pl_"

// tokenBytes is how much randomness a token holds. It cannot be guessed, so a document need not
// keep it by a slow hash.
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

// String is the sum in lower-case hexadecimal, as documents write it.
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
