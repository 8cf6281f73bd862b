// Package secret reads secrets from a file or a parameter of AWS Systems Manager. Nothing is opened
// before the first read, so that unused secrets cost nothing.
package secret

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// maxAnswer bounds an answer in bytes; a parameter has at most 8 KiB.
const maxAnswer = 64 << 10

// parameter is a parameter of AWS Systems Manager, a SecureString or a plain one. It implements
// Source.
type parameter struct {
	name   string
	client signed.Client
}

// Read implements Source.
func (p *parameter) Read(ctx context.Context) (string, error) {
	text, err := p.get(ctx)
	if err != nil {
		return "", fmt.Errorf("read secret %s: %w", p, err)
	}
	return text, nil
}

// get sends GetParameter in the protocol awsJson1_1.
func (p *parameter) get(ctx context.Context) (string, error) {
	request, err := json.Marshal(map[string]any{"Name": p.name, "WithDecryption": true})
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	header := http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"AmazonSSM.GetParameter"}}
	resp, err := p.client.Post(ctx, "/", header, request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return "", fmt.Errorf("read answer of Systems Manager: %w", err)
	}
	var out struct {
		Parameter struct{ Value *string }
		Type      string `json:"__type"`
		Message   string
	}
	err = json.Unmarshal(body, &out)
	switch {
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("status %d of Systems Manager: %s: %s", resp.StatusCode, out.Type, cmp.Or(out.Message, "no message"))
	case err != nil:
		return "", fmt.Errorf("read answer of Systems Manager: %w", err)
	case out.Parameter.Value == nil:
		return "", errors.New("the answer of Systems Manager has no value")
	}
	return *out.Parameter.Value, nil
}

// String implements Source.
func (p *parameter) String() string { return ssmPrefix + p.name }
