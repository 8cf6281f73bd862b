package lifetime

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestLifetime runs every scenario. All share one bubble, because decoders that the whole program
// shares hold channels, which cannot be used in another bubble.
func TestLifetime(t *testing.T) {
	hangups := make(chan os.Signal, 1) // its goroutine, which never ends, may not be in the bubble
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	x := newTarget(t)
	synctest.Test(t, func(t *testing.T) {
		for _, scenario := range []func(*testing.T, *target){restart, stalls, deaths} {
			// An hour and three quarters into a day: the table of label sets and the window change.
			time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(25*time.Hour + 45*time.Minute)))
			x.now.Store(time.Now().Unix())
			x.alarm.Store(false)
			scenario(t, x)
		}
	})
}
