// Command lambda supplies the two parts of AWS that LocalStack's free edition lacks without Docker:
// processes that run functions, and an API Gateway HTTP API in front of functions.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
)

const (
	program     = "lambda"
	description = "Emulates AWS Lambda's execution environments and API Gateway's HTTP APIs, on loopback."
)

// cli is the grammar of the command line; its fields hold the defaults.
type cli struct {
	Function function `cmd:"" help:"Run a bootstrap as a function, and serve Lambda's Invoke operation for it."`
	Gateway  gateway  `cmd:"" help:"Serve an HTTP API in front of the functions of a Lambda endpoint."`
}

func newCLI() *cli { return &cli{Function: newFunction(), Gateway: newGateway()} }

// serve serves h on the address and prints its URL, until ctx ends.
func serve(ctx context.Context, out flags.Streams, listen string, h http.Handler) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("open listener: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	if _, err := fmt.Fprintf(out.Out, "listening on http://%s\n", ln.Addr()); err != nil {
		return fmt.Errorf("print address: %w", err)
	}
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func main() {
	out := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], out))
}
