package auth

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

// MaxSecretBytes is the maximum size of a secret.
const MaxSecretBytes = 1 << 20

// Secret is the location of a secret: a file or a parameter of AWS Systems Manager. Nothing is
// opened before the first read, so that unused secrets cost nothing. It is safe for concurrent use.
type Secret interface {
	// Read returns the current secret. It does not cache.
	Read(ctx context.Context) (string, error)
	// String returns the reference from which OpenSecret returns the source. It contains no secret.
	String() string
}

// IsReference reports whether text is a reference (file:PATH or ssm:NAME), not the secret itself.
func IsReference(text string) bool {
	_, err := OpenSecret(text)
	return err == nil
}

const (
	filePrefix = "file:"
	ssmPrefix  = "ssm:"
)

// OpenSecret returns the source of a reference: file:PATH, or ssm:NAME for a parameter of AWS
// Systems Manager. It does not access the source.
func OpenSecret(reference string) (Secret, error) {
	if path, ok := strings.CutPrefix(reference, filePrefix); ok && path != "" {
		return SecretFile(path), nil
	}
	if name, ok := strings.CutPrefix(reference, ssmPrefix); ok && name != "" {
		return &parameter{name, signed.Client{Service: "ssm", Repeats: true}}, nil
	}
	// the text may be the secret, so the error does not contain it
	return nil, errors.New("secret: want file:PATH or ssm:NAME")
}

// SecretFile is the path of a file with a secret. It implements Secret.
type SecretFile string

// Read implements Secret.
func (f SecretFile) Read(context.Context) (string, error) {
	info, err := os.Stat(string(f))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	if info.Size() > MaxSecretBytes {
		return "", fmt.Errorf("read secret %s: %d bytes, at most %d are allowed", f, info.Size(), MaxSecretBytes)
	}
	text, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	return string(text), nil
}

// String implements Secret.
func (f SecretFile) String() string { return filePrefix + string(f) }

// SecretOf returns the source of a reference, or text itself as a secret that is at hand.
func SecretOf(text string) Secret {
	if from, err := OpenSecret(text); err == nil {
		return from
	}
	return literal(text)
}

// literal is a secret that is at hand. It implements Secret.
type literal string

// Read implements Secret.
func (l literal) Read(context.Context) (string, error) { return string(l), nil }

// String implements Secret.
func (literal) String() string { return "a literal" }

// maxAnswer bounds an answer in bytes; a parameter has at most 8 KiB.
const maxAnswer = 64 << 10

// parameter is a parameter of AWS Systems Manager, a SecureString or a plain one. It implements
// Secret.
type parameter struct {
	name   string
	client signed.Client
}

// Read implements Secret.
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

// String implements Secret.
func (p *parameter) String() string { return ssmPrefix + p.name }
