package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/memory"
)

const (
	// codeDelay is the time from when a server is ready to the next release of the program's code:
	// until then it has opened what its first requests need.
	codeDelay = time.Second
	// codeInterval is the time between two releases. A release, with mapping again what runs, takes
	// one to two milliseconds of processor time.
	codeInterval = time.Minute
)

// releaseCode releases the program's code from resident memory: most of it ran only while the
// process started. It returns a function that does so again, and reports whether it can.
func releaseCode(log *slog.Logger) func() bool {
	code, err := memory.ProgramCode()
	release := func() bool {
		if err == nil {
			err = code.Release()
		}
		if err != nil {
			log.Debug("the program's code stays in memory", "err", err)
		}
		return err == nil
	}
	release()
	return release
}

// keepReleasing releases the code from time to time until ctx ends.
func keepReleasing(ctx context.Context, release func() bool) {
	timer := time.NewTimer(codeDelay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if !release() {
				return
			}
			timer.Reset(codeInterval)
		}
	}
}
