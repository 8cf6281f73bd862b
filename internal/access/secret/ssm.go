package secret

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/promlake/promlake/internal/aws/signed"
)

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
