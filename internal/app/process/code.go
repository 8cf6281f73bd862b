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

// code releases the program's code from resident memory: most of it runs only while the process
// starts.
type code struct {
	memory.Code
	log *slog.Logger
}

// programCode finds the code, and releases what the initialization of packages used.
func programCode(log *slog.Logger) code {
	own, err := memory.ProgramCode()
	if err != nil {
		log.Debug("the program's code stays in memory", "err", err)
	}
	c := code{own, log}
	c.release()
	return c
}

// keepReleasing releases the code from time to time until ctx ends.
func (c code) keepReleasing(ctx context.Context) {
	timer := time.NewTimer(codeDelay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			c.release()
			timer.Reset(codeInterval)
		}
	}
}

func (c code) release() {
	if err := c.Release(); err != nil {
		c.log.Debug("release the program's code", "err", err)
	}
}
