package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/memory"
)

const (
	// divideDelay is the time from when a server is ready until its code is divided, which would
	// make its first requests slower.
	divideDelay = 100 * time.Millisecond
	// codeDelay is the time from then to the next release of the code: by then the server has
	// opened what it opens ahead.
	codeDelay = time.Second
	// codeInterval is the time between two releases. A release, with mapping again what runs, takes
	// one to two milliseconds of processor time.
	codeInterval = time.Minute
)

// releasedCode is the program's code. Most of it runs only while the process starts, and is released
// from resident memory.
type releasedCode struct {
	memory.Code
	log *slog.Logger
}

// releaseCode releases the program's code for the first time.
func releaseCode(log *slog.Logger) releasedCode {
	code, err := memory.ProgramCode()
	c := releasedCode{code, log}
	c.check(err)
	c.release()
	return c
}

// check reports whether there is no error.
func (c releasedCode) check(err error) bool {
	if err != nil {
		c.log.Debug("the program's code stays in memory", "err", err)
	}
	return err == nil
}

// release releases the code, and reports whether it can.
func (c releasedCode) release() bool { return c.check(c.Release()) }

// keepReleasing divides the code, calls settled, and releases the code from time to time until ctx
// ends.
func (c releasedCode) keepReleasing(ctx context.Context, settled func()) {
	timer := time.NewTimer(divideDelay)
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		ok := (n > 0 || c.check(c.Divide())) && c.release()
		next := codeInterval
		if n == 0 {
			settled()
			next = codeDelay
		}
		if !ok {
			return
		}
		timer.Reset(next)
	}
}
