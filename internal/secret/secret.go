// Package secret reads secret texts from where they are kept: a file, or a parameter of AWS Systems
// Manager. Nothing is opened before the first read, so that a process which never asks pays
// nothing.
package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// MaxBytes bounds a secret text.
const MaxBytes = 1 << 20

// Source is where one secret text is kept. It is safe for concurrent use.
type Source interface {
	// Read returns the text as it is now. It asks the place itself each time.
	Read(ctx context.Context) (string, error)
	// String is the reference by which Open knows the source. It tells no secret.
	String() string
}

// IsReference reports whether text names a place (file:PATH or ssm:NAME), and is not the secret
// itself.
func IsReference(text string) bool {
	_, err := Open(text)
	return err == nil
}

const (
	filePrefix = "file:"
	ssmPrefix  = "ssm:"
)

// Open returns the source that a reference names: file:PATH, or ssm:NAME for a parameter of AWS
// Systems Manager. The place is not looked at.
func Open(reference string) (Source, error) {
	if path, ok := strings.CutPrefix(reference, filePrefix); ok && path != "" {
		return File(path), nil
	}
	if name, ok := strings.CutPrefix(reference, ssmPrefix); ok && name != "" {
		return newParameter(name), nil
	}
	// what was given may be the secret: it is not repeated
	return nil, errors.New("secret: want file:PATH or ssm:NAME")
}

// File is a file by its path. It implements Source.
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
