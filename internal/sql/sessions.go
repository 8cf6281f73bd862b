package sql

import (
	"errors"
	"slices"
	"sync"
)

// keptSessions is how many sessions wait for statements. Each has 3 MB, and as many threads as a
// statement.
const keptSessions = 4

// sessions keeps the sessions of statements that ended well for later statements of the same
// tenant: to open a database takes longer than most statements. A SELECT changes nothing in a
// database, and each statement has a connection of its own, which ends with it. It is safe for
// concurrent use.
type sessions struct {
	open func() (*session, error)

	mu     sync.Mutex
	idle   []*session // in the order of their last use
	closed bool
}

// take returns the session that the tenant used last, or opens one. plain: RegisterLookup was not
// called for it.
func (s *sessions) take(tenant string, plain bool) (*session, error) {
	s.mu.Lock()
	for i, x := range slices.Backward(s.idle) {
		if x.tenant == tenant && !(plain && x.lookup) {
			s.idle = slices.Delete(s.idle, i, i+1)
			s.mu.Unlock()
			return x, nil
		}
	}
	s.mu.Unlock()
	x, err := s.open()
	if err != nil {
		return nil, err
	}
	x.tenant = tenant
	return x, nil
}

// end keeps a session that another statement may use, and closes one that none may use or, if too
// many are kept, the one that was not used for longest.
func (s *sessions) end(x *session, reusable bool) error {
	s.mu.Lock()
	if reusable && !s.closed {
		s.idle = append(s.idle, x)
		x = nil
		if len(s.idle) > keptSessions {
			x = s.idle[0]
			s.idle = slices.Delete(s.idle, 0, 1)
		}
	}
	s.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.Close()
}

// Close closes the sessions that are kept. Later ones are closed when their statements end.
func (s *sessions) Close() (err error) {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, x := range idle {
		err = errors.Join(err, x.Close())
	}
	return err
}
