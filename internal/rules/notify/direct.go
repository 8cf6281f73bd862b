package notify

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	parallel  = 16 // messages to a receiver at once
	maxErrors = 10 // that one error names
)

var (
	// errRefused marks errors of messages that their receiver will never accept.
	errRefused = errors.New("refused")
	// errUnsent stands for messages that were not sent because of the error of another one.
	errUnsent = errors.New("not sent")
)

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
	results := make([]error, len(all)) // of each event
	for i := range results {
		results[i] = errUnsent
	}
	var failed atomic.Bool
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, key := range order {
		g.Go(func() error {
			for _, i := range events[key] {
				if failed.Load() {
					return nil
				}
				if results[i] = send(ctx, all[i]); results[i] != nil && !errors.Is(results[i], errRefused) {
					failed.Store(true)
					return nil
				}
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in results
	var errs, wrongs []error
	for i, err := range results {
		switch {
		case errors.Is(err, errRefused):
			wrongs = append(wrongs, err)
		case err == nil:
		default:
			d.Left = append(d.Left, all[i].from)
			if !errors.Is(err, errUnsent) {
				errs = append(errs, err)
			}
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
