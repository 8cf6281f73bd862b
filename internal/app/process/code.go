package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/memory"
)

const (
	// codeDelay is the time from the start of a server to the second release of the program's code:
	// until then it has opened what its first requests need.
	codeDelay = time.Second
	// codeInterval is the time between two releases. A release, with mapping again what runs, takes
	// one to two milliseconds of processor time.
	codeInterval = time.Minute
)

// keepReleasing releases the program's code from resident memory: most of it ran only while the
// process started. It returns after the first release. Others follow until ctx ends.
func keepReleasing(ctx context.Context, log *slog.Logger) {
	code, err := memory.ProgramCode()
	if err != nil {
		log.Debug("the program's code stays in memory", "err", err)
		return
	}
	release := func() bool {
		err := code.Release()
		if err != nil {
			log.Debug("release the program's code", "err", err)
		}
		return err == nil
	}
	if !release() {
		return
	}
	go func() {
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
	}()
}
