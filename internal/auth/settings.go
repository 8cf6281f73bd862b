// Package auth decides who may do what: a request carries a bearer token, a document says which
// tenants and which kinds of access each token has. The document holds hashes of tokens and no
// token.
package auth

import (
	"fmt"

	"github.com/promlake/promlake/internal/secret"
)

// Settings say where the document of tokens is. The tags are command-line flags.
type Settings struct {
	Tokens string `name:"auth.tokens" placeholder:"SOURCE" help:"Document of tokens: file:PATH, or ssm:NAME for a parameter of AWS Systems Manager. Default: requests need no token."`
}

// Enabled reports whether requests need a token.
func (s Settings) Enabled() bool { return s.Tokens != "" }

// Validate reports what makes no sense, by the name of its flag.
func (s Settings) Validate() error {
	if s.Enabled() && !secret.IsReference(s.Tokens) {
		return fmt.Errorf("auth.tokens: want file:PATH or ssm:NAME, got %q", s.Tokens)
	}
	return nil
}
