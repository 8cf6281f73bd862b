package secret

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
)

// maxAnswer bounds an answer in bytes; a parameter has at most 8 KiB.
const maxAnswer = 64 << 10

// parameter is a parameter of AWS Systems Manager, a SecureString or a plain one. Region,
// credentials and endpoint are those of the AWS environment (AWS_REGION, AWS_ENDPOINT_URL_SSM, …).
// It implements Source.
//
// It sends GetParameter itself, signed by the SDK: the SDK's client of this service would cost
// every process that contains it 2 ms and 1.4 MB at the start, even if it is never used.
type parameter struct {
	name string

	mu  sync.Mutex
	cfg *aws.Config // nil until the configuration could be loaded
}

// Read implements Source.
func (p *parameter) Read(ctx context.Context) (string, error) {
	cfg, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	text, err := p.get(ctx, cfg)
	if err != nil {
		return "", fmt.Errorf("read secret %s: %w", p, err)
	}
	return text, nil
}

func (p *parameter) open(ctx context.Context) (*aws.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg != nil {
		return p.cfg, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration for secret %s: %w", p, err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("load AWS configuration for secret %s: no region, set AWS_REGION", p)
	}
	p.cfg = &cfg
	return p.cfg, nil
}

// get sends GetParameter in the protocol awsJson1_1.
func (p *parameter) get(ctx context.Context, cfg *aws.Config) (string, error) {
	req, err := p.request(ctx, cfg)
	if err != nil {
		return "", err
	}
	client := cmp.Or[aws.HTTPClient](cfg.HTTPClient, http.DefaultClient)
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("request to Systems Manager: %w", err)
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

// request returns the signed request.
func (p *parameter) request(ctx context.Context, cfg *aws.Config) (*http.Request, error) {
	body, err := json.Marshal(map[string]any{"Name": p.name, "WithDecryption": true})
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint(cfg), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AmazonSSM.GetParameter")
	credentials, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), "ssm", cfg.Region, time.Now()); err != nil {
		return nil, fmt.Errorf("sign request: %w", err)
	}
	return req, nil
}

// endpoint returns the service's URL in the region.
func endpoint(cfg *aws.Config) string {
	if set := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_SSM"), aws.ToString(cfg.BaseEndpoint)); set != "" {
		return strings.TrimSuffix(set, "/") + "/"
	}
	suffix := "amazonaws.com"
	if strings.HasPrefix(cfg.Region, "cn-") {
		suffix += ".cn"
	}
	return "https://ssm." + cfg.Region + "." + suffix + "/"
}

// String implements Source.
func (p *parameter) String() string { return ssmPrefix + p.name }
