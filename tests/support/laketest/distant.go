package laketest

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Distant answers every request after a delay, and counts them by what they are for.
type Distant struct {
	objstore.Store
	delay time.Duration

	mu       sync.Mutex
	Count    map[string]int // by kind of object; "list" for listings
	Bytes    map[string]int64
	Requests []requestTime
}

// requestTime is when a request began and when it was answered.
type requestTime struct{ begun, ended time.Time }

// NewDistant returns a store that answers as s does, after the delay.
func NewDistant(s objstore.Store, delay time.Duration) *Distant {
	return &Distant{Store: s, delay: delay, Count: map[string]int{}, Bytes: map[string]int64{}}
}

func (s *Distant) asked(kind string, n int64) {
	s.mu.Lock()
	s.Count[kind]++
	s.Bytes[kind] += n
	s.mu.Unlock()
	begun := time.Now()
	time.Sleep(s.delay)
	s.mu.Lock()
	s.Requests = append(s.Requests, requestTime{begun, time.Now()})
	s.mu.Unlock()
}

// Rounds returns the largest number of requests of which each began after the end of the one
// before.
func (s *Distant) Rounds() int {
	slices.SortFunc(s.Requests, func(a, b requestTime) int { return a.ended.Compare(b.ended) })
	n, last := 0, time.Time{}
	for _, r := range s.Requests {
		if !r.begun.Before(last) {
			n, last = n+1, r.ended
		}
	}
	return n
}

// Get implements objstore.Store.
func (s *Distant) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	body, o, err := s.Store.Get(ctx, k, offset, length)
	kind := k[strings.LastIndex(k, "/")+1:]
	switch {
	case strings.Contains(k, "/segments/"):
		kind = "segment"
	case strings.Contains(k, "/answers/"):
		kind = "answers"
	case strings.HasPrefix(kind, "samples-"):
		kind = "samples"
	}
	n := length
	if length < 0 {
		n = o.Size - offset
	}
	s.asked(kind, n)
	return body, o, err
}

// List implements objstore.Store.
func (s *Distant) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		s.asked("list", 0)
		s.Store.List(ctx, prefix, after)(yield)
	}
}
