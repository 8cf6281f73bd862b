package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/memory"
)

const (
	// codeDelay is the time from the start of a server to the first release of the program's code.
	// What the start ran is also what the first request needs.
	codeDelay = 10 * time.Second
	// codeInterval is the time between two releases. A release, with mapping again what runs, takes
	// one to two milliseconds of processor time.
	codeInterval = time.Minute
)

// keepReleasing releases the program's code from resident memory from time to time until ctx ends:
// most of it ran only while the process started.
func keepReleasing(ctx context.Context, log *slog.Logger) {
	code, err := memory.ProgramCode()
	if err != nil {
		log.Debug("the program's code stays in memory", "err", err)
		return
	}
	timer := time.NewTimer(codeDelay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if err := code.Release(); err != nil {
				log.Debug("release the program's code", "err", err)
				return
			}
			timer.Reset(codeInterval)
		}
	}
}
