package main

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/query/request"
)

// busyAfter is how long a statement runs before the shell shows that it does.
const busyAfter = time.Second

// busy shows how far the statement of the context that it returns is, until stop.
func (b *bar) busy(ctx context.Context) (running context.Context, stop func()) {
	var p request.Progress
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		begun, tick, shown := time.Now(), time.NewTicker(redraw), ""
		defer tick.Stop()
		for {
			select {
			case <-done:
				if shown != "" {
					b.draw("")
				}
				return
			case now := <-tick.C:
				if line := busyLine(now.Sub(begun), p.Share); line != shown {
					b.draw(line)
					shown = line
				}
			}
		}
	}()
	return request.WithProgress(ctx, &p), func() {
		close(done)
		<-ended
	}
}

// busyLine is the line of a statement that has been running for some time: none at first, and without
// a gauge if it is not known how far the statement is, as it is with a server.
func busyLine(ran time.Duration, share func() (part float64, ok bool)) string {
	if ran < busyAfter {
		return ""
	}
	seconds := int(ran.Seconds())
	part, ok := share()
	if !ok {
		return fmt.Sprintf("running for %d s; Ctrl-C cancels", seconds)
	}
	const whole = 1000
	return fmt.Sprintf("%s read, %d s; Ctrl-C cancels", gauge(int64(part*whole), whole), seconds)
}
