package app

import (
	"context"
	"fmt"
	"io"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/demo"
)

// feeder runs a demo.Feeder beside the stages. It implements process.Stage.
type feeder struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the feeder has ended
}

// feeding returns the builder of the demo's feeder.
func feeding(s demo.Settings, out io.Writer) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		f, err := demo.New(s, p.URL, p.Token, p.Registry, out, p.Logger, p.Now)
		if err != nil {
			return nil, fmt.Errorf("start demo: %w", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		stage := &feeder{cancel: cancel, done: make(chan struct{})}
		go func() {
			defer close(stage.done)
			select {
			case <-p.Ready:
				f.Run(ctx)
			case <-ctx.Done():
			}
		}()
		return stage, nil
	}
}

// Routes implements process.Stage.
func (*feeder) Routes() []process.Route { return nil }

// Drain implements process.Stage: it ends the feeder.
func (f *feeder) Drain(ctx context.Context) error {
	f.cancel()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end demo: %w", ctx.Err())
	}
}

// Close implements process.Stage.
func (f *feeder) Close() error {
	f.cancel()
	<-f.done
	return nil
}
