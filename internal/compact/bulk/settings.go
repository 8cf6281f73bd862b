package bulk

import (
	"errors"
	"time"

	"github.com/promlake/promlake/internal/format/key"
)

// Settings configure an import.
type Settings struct {
	Level       key.Level // of the largest blocks, at least 2h
	MemoryBytes int64     // for the series of the units under way
	Concurrency int       // units that are written at once
	TempDir     string    // for the files of a block before their upload; "" is the system's
	Rollups     bool      // beside 24h blocks
	Retention   time.Duration
	Restore     bool          // import again what was imported into windows with quarantined blocks
	WindowDelay time.Duration // after the end of a window until it becomes a block
	// MaxSamples bounds the samples of one unit, about, so that it is done long before its commit
	// would be refused for its age.
	MaxSamples int64
}

var (
	// errTooLarge reports a unit that must be divided by series.
	errTooLarge = errors.New("its series do not fit into the memory")
	// errAgain reports a unit that must be repeated: its block must have start timestamps, or
	// another import has done a part of it.
	errAgain = errors.New("the block must be written anew")
)
