package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/memory"
)

// codeInterval is the time between two releases of the program's code. A release, with mapping
// again what runs, takes one to two milliseconds of processor time.
const codeInterval = time.Minute

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

// keepReleasing releases the code now, and in intervals until ctx ends.
func (c code) keepReleasing(ctx context.Context) {
	timer := time.NewTicker(codeInterval)
	defer timer.Stop()
	for {
		c.release()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

func (c code) release() {
	if err := c.Release(); err != nil {
		c.log.Debug("release the program's code", "err", err)
	}
}
