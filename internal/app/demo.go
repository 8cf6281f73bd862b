package app

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/auth"
	"github.com/promlake/promlake/internal/demo"
)

// demonstration serves the machine's metrics and prints the welcome. It implements process.Stage.
type demonstration struct {
	machine http.Handler
	cancel  context.CancelFunc
	done    chan struct{} // closed when the welcome is printed, or will not be
}

// demonstrating returns the builder of the demo.
func demonstrating(s demo.Settings, out io.Writer) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		ctx, cancel := context.WithCancel(context.Background())
		d := &demonstration{machine: demo.NodeHandler(s, p.Logger, p.Now), cancel: cancel, done: make(chan struct{})}
		go func() {
			defer close(d.done)
			select {
			case <-p.Ready:
				demo.Welcome(ctx, s, p.URL, p.Token, out, p.Logger)
			case <-ctx.Done():
			}
		}()
		return d, nil
	}
}

// Routes implements process.Stage.
func (d *demonstration) Routes() []process.Route {
	return []process.Route{{Pattern: "GET " + demo.NodePath, Name: demo.NodePath, Access: auth.Operate, Handler: d.machine}}
}

// Drain implements process.Stage.
func (d *demonstration) Drain(ctx context.Context) error {
	d.cancel()
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end demo: %w", ctx.Err())
	}
}

// Close implements process.Stage; Drain left nothing to release.
func (*demonstration) Close() error { return nil }
