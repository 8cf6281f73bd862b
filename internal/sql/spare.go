package sql

import (
	"context"
	"log/slog"
	"sync"
)

// spare keeps one session open for the next statement, because opening it takes longer than many
// statements. A session that was used is never used again. It is safe for concurrent use.
type spare struct {
	open   func() (*session, error)
	logger *slog.Logger

	mu      sync.Mutex
	ready   *session
	opening chan struct{} // closed once ready is set, or not; nil: nothing is being opened
	closed  bool
	work    sync.WaitGroup
}

// take returns a session that no statement has used.
func (s *spare) take(ctx context.Context) (*session, error) {
	for {
		s.mu.Lock()
		x, opening := s.ready, s.opening
		s.ready = nil
		s.mu.Unlock()
		switch {
		case x != nil:
			return x, nil
		case opening == nil:
			return s.open()
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// end closes a used session in the background, and opens another one for the next statement.
func (s *spare) end(used *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return used.Close()
	}
	open := s.ready == nil && s.opening == nil
	if open {
		s.opening = make(chan struct{})
	}
	s.work.Go(func() {
		if err := used.Close(); err != nil {
			s.logger.Warn("close the database of a statement", "err", err)
		}
		if open {
			s.prepare()
		}
	})
	return nil
}

// prepare opens a session.
func (s *spare) prepare() {
	x, err := s.open()
	if err != nil { // the next statement opens one, and reports the error
		s.logger.Debug("open a database for SQL ahead", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = x
	close(s.opening)
	s.opening = nil
}

// Close ends the work in the background and closes the session that is open. Later sessions are
// closed at once.
func (s *spare) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		return nil
	}
	x := s.ready
	s.ready = nil
	return x.Close()
}
