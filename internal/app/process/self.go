package process

import (
	"context"
	"fmt"
	"net/http"

	"github.com/promlake/promlake/internal/app/selfwrite"
)

// writePath is where a write stage takes remote_write.
const writePath = "/api/v1/write"

// writeHandler is the handler of the write stage among the stages, without guard; nil if there is
// none.
func (all stages) writeHandler() http.Handler {
	for _, stage := range all {
		for _, r := range stage.Routes() {
			if r.Pattern == writePath {
				return r.Handler
			}
		}
	}
	return nil
}

// selfWriting lets a process write its own metrics as long as it serves. It implements Stage.
type selfWriting struct {
	Idle
	writer *selfwrite.Writer
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing is written any more
}

// keepWriting returns the stage that runs w, which may be nil.
func keepWriting(w *selfwrite.Writer) Stage {
	if w == nil {
		return Idle{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &selfWriting{writer: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		w.Run(ctx)
	}()
	return s
}

// Drain implements Stage: the last values are written.
func (s *selfWriting) Drain(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.done:
		s.writer.Flush(ctx)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the writing of own metrics: %w", ctx.Err())
	}
}
