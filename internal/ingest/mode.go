package ingest

import (
	"errors"
	"fmt"
)

// Mode is the way from a request to the store.
type Mode string

// The modes.
const (
	// Grouped gathers concurrent requests and writes one segment for them all. It is for processes that take many requests at once.
	Grouped Mode = "grouped"
	// Direct writes a segment for each request.
	Direct Mode = "direct"
	// Buffered puts requests on a queue, from which Consume takes many at once.
	Buffered Mode = "buffered"
)

func (s *Settings) validateMode() error {
	var errs []error
	switch s.Mode {
	case Grouped, Direct:
	case Buffered:
		if s.QueueURL == "" {
			errs = append(errs, errors.New("mode buffered wants the URL of a queue (queue-url)"))
		}
	default:
		errs = append(errs, fmt.Errorf("mode must be %s, %s or %s, is %q", Grouped, Direct, Buffered, s.Mode))
	}
	if s.FlushTimeout >= s.SettleDelay {
		errs = append(errs, fmt.Errorf("flush timeout (%s) must be shorter than the compactor's settle delay (%s): a merge must not overlook a segment that is still being written",
			s.FlushTimeout, s.SettleDelay))
	}
	return errors.Join(errs...)
}
