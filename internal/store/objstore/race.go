package objstore

import (
	"context"
	"math/rand/v2"
	"time"

	smithytime "github.com/aws/smithy-go/time"
)

const (
	firstWait = 20 * time.Millisecond
	longWait  = 2 * time.Second
)

// AfterRace sleeps before the n-th attempt after the first of a compare-and-swap that others
// preceded, for a random time that grows with n. It fails if ctx ends.
func AfterRace(ctx context.Context, n int) error {
	return smithytime.SleepWithContext(ctx, rand.N(min(longWait, firstWait<<min(n, 10))))
}
