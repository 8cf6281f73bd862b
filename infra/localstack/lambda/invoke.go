package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/tests/support/emulator"
)

// remote invokes a function by Lambda's API. API Gateway does not retry, so neither does it. It
// implements emulator.Invoker.
type remote struct {
	*lambda.Remote
	log *slog.Logger
}

// Invoke delivers an event to the function.
func (r remote) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	out, err := r.Remote.Invoke(ctx, payload)
	if err != nil {
		r.log.Warn("invocation failed", "function", r.Name, "err", err)
	}
	if errors.Is(err, lambda.ErrRequestTooLarge) {
		err = fmt.Errorf("%w: %w", emulator.ErrRequestTooLarge, err)
	}
	return out, err
}
