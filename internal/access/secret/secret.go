// Package secret reads secrets from a file or a parameter of AWS Systems Manager. Nothing is opened
// before the first read, so that unused secrets cost nothing.
package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/promlake/promlake/internal/aws/signed"
)

// MaxBytes is the maximum size of a secret.
const MaxBytes = 1 << 20

// Source is the location of a secret. It is safe for concurrent use.
type Source interface {
	// Read returns the current secret. It does not cache.
	Read(ctx context.Context) (string, error)
	// String returns the reference from which Open returns the source. It contains no secret.
	String() string
}

// IsReference reports whether text is a reference (file:PATH or ssm:NAME), not the secret itself.
func IsReference(text string) bool {
	_, err := Open(text)
	return err == nil
}

const (
	filePrefix = "file:"
	ssmPrefix  = "ssm:"
)

// Open returns the source of a reference: file:PATH, or ssm:NAME for a parameter of AWS Systems
// Manager. It does not access the source.
func Open(reference string) (Source, error) {
	if path, ok := strings.CutPrefix(reference, filePrefix); ok && path != "" {
		return File(path), nil
	}
	if name, ok := strings.CutPrefix(reference, ssmPrefix); ok && name != "" {
		return &parameter{name, signed.Client{Service: "ssm", Repeats: true}}, nil
	}
	// the text may be the secret, so the error does not contain it
	return nil, errors.New("secret: want file:PATH or ssm:NAME")
}

// File is the path of a file with a secret. It implements Source.
type File string

// Read implements Source.
func (f File) Read(context.Context) (string, error) {
	info, err := os.Stat(string(f))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	if info.Size() > MaxBytes {
		return "", fmt.Errorf("read secret %s: %d bytes, at most %d are allowed", f, info.Size(), MaxBytes)
	}
	text, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	return string(text), nil
}

// String implements Source.
func (f File) String() string { return filePrefix + string(f) }

// Literal is a secret that is at hand. It implements Source.
type Literal string

// Read implements Source.
func (l Literal) Read(context.Context) (string, error) { return string(l), nil }

// String implements Source.
func (Literal) String() string { return "a literal" }
