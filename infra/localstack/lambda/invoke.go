package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/promlake/promlake/internal/lambda/emulator"
)

// newClient returns a client of Lambda's API. API Gateway does not retry, so neither does the
// client.
func newClient(ctx context.Context, region, endpoint string) (*lambda.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithRetryMaxAttempts(1))
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	return lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	}), nil
}

// remote invokes a function by Lambda's API. It implements emulator.Invoker.
type remote struct {
	client *lambda.Client
	name   string
	log    *slog.Logger
}

// Invoke delivers an event to the function. Errors that the function reported are
// *emulator.FunctionError.
func (r remote) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	out, err := r.client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &r.name, Payload: payload})
	var large *types.RequestTooLargeException
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w: %w", emulator.ErrRequestTooLarge, err)
	case err != nil:
		err = fmt.Errorf("invoke %s: %w", r.name, err)
	case out.FunctionError != nil:
		fe := &emulator.FunctionError{Type: *out.FunctionError}
		if json.Unmarshal(out.Payload, fe) != nil {
			fe.Message = string(out.Payload)
		}
		err = fe
	}
	if err != nil {
		r.log.Warn("invocation failed", "function", r.name, "err", err)
		return nil, err
	}
	return out.Payload, nil
}
