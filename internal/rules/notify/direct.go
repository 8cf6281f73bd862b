package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	parallel  = 16 // messages to a receiver at once
	maxErrors = 10 // that one error names
)

// errRefused marks errors of messages that their receiver will never accept.
var errRefused = errors.New("refused")

// direct sends each alert in a message of its own. Events of one alert are sent one after another,
// in their order. The first error that is not of one message ends the delivery: a receiver that
// does not answer takes the time of one request.
func direct(ctx context.Context, all []alert, send func(context.Context, alert) error) (d Delivery, err error) {
	var order []string
	events := map[string][]int{}
	for i, a := range all {
		key := string(a.Labels.Bytes(nil))
		if len(events[key]) == 0 {
			order = append(order, key)
		}
		events[key] = append(events[key], i)
	}
	var (
		mu           sync.Mutex
		failed       atomic.Bool
		errs, wrongs []error
		done         = make([]bool, len(all))
		g            errgroup.Group
	)
	g.SetLimit(parallel)
	for _, key := range order {
		g.Go(func() error {
			for _, i := range events[key] {
				if failed.Load() {
					return nil
				}
				err := send(ctx, all[i])
				switch {
				case errors.Is(err, errRefused):
					mu.Lock()
					wrongs = append(wrongs, err)
					mu.Unlock()
				case err != nil:
					failed.Store(true)
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					return nil
				}
				done[i] = true
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs and wrongs
	for i, a := range all {
		if !done[i] {
			d.Left = append(d.Left, a.from)
		}
	}
	d.Refused = Few(wrongs)
	return d, Few(errs)
}

// Few joins the first errors, and the number of the others, for a log line.
func Few(errs []error) error {
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more errors", more))
	}
	return errors.Join(errs...)
}
