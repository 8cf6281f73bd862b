package main

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
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/promlake/promlake/tests/support/emulator"
)

// client sends requests to Lambda's API. API Gateway does not retry, so neither does the client.
// AWS's own client of Lambda would be in go.mod for this one request.
type client struct {
	cfg      aws.Config
	endpoint string // without a slash at the end
}

func newClient(ctx context.Context, region, endpoint string) (*client, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	endpoint = cmp.Or(endpoint, aws.ToString(cfg.BaseEndpoint), "https://lambda."+cfg.Region+".amazonaws.com")
	return &client{cfg, strings.TrimSuffix(endpoint, "/")}, nil
}

// invoke sends an event to a function. The caller closes the answer's body.
func (c *client) invoke(ctx context.Context, name string, payload []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+"/2015-03-31/functions/"+url.PathEscape(name)+"/invocations", bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	credentials, err := c.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	sum := sha256.Sum256(payload)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), "lambda", c.cfg.Region, time.Now()); err != nil {
		return nil, fmt.Errorf("sign request: %w", err)
	}
	return cmp.Or[aws.HTTPClient](c.cfg.HTTPClient, http.DefaultClient).Do(req)
}

// remote invokes a function by Lambda's API. It implements emulator.Invoker.
type remote struct {
	client *client
	name   string
	log    *slog.Logger
}

// Invoke delivers an event to the function. Errors that the function reported are
// *emulator.FunctionError.
func (r remote) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	out, err := r.invoke(ctx, payload)
	if err != nil {
		r.log.Warn("invocation failed", "function", r.name, "err", err)
	}
	return out, err
}

func (r remote) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	resp, err := r.client.invoke(ctx, r.name, payload)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", r.name, err)
	}
	out, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("invoke %s: %w", r.name, err)
	}
	if failed := resp.Header.Get("X-Amz-Function-Error"); failed != "" {
		fe := &emulator.FunctionError{Type: failed}
		if json.Unmarshal(out, fe) != nil {
			fe.Message = string(out)
		}
		return nil, fe
	}
	if resp.StatusCode == http.StatusRequestEntityTooLarge {
		return nil, fmt.Errorf("%w: %s", emulator.ErrRequestTooLarge, out)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("invoke %s: status %d, %s: %s", r.name, resp.StatusCode, resp.Header.Get("X-Amzn-ErrorType"), out)
	}
	return out, nil
}
