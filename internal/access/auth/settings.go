// Package auth authenticates and authorizes requests: a request has a bearer token, and a document
// lists the tenants and kinds of access of each token. The document contains hashes of tokens, not
// the tokens.
package auth

import (
	"fmt"

	"github.com/promlake/promlake/internal/access/secret"
)

// Settings are the location of the document of tokens. The tags are those of package settings.
type Settings struct {
	Tokens string `name:"auth.tokens" basic:"" placeholder:"SOURCE" help:"Source of the document of tokens: file:PATH, or ssm:NAME for a parameter of AWS Systems Manager. Default: requests need no token." when:"Set it on every server that others reach."`
}

// Enabled reports whether requests need a token.
func (s Settings) Enabled() bool { return s.Tokens != "" }

// Validate returns an error that names the flag of an invalid setting.
func (s Settings) Validate() error {
	if s.Enabled() && !secret.IsReference(s.Tokens) {
		return fmt.Errorf("auth.tokens: want file:PATH or ssm:NAME, got %q", s.Tokens)
	}
	return nil
}
