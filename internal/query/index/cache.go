package index

import (
	"context"
	"sync"

	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/lru"
)

// Sized is what a Cache holds.
type Sized interface {
	Bytes() int64 // of memory, about
}

// Cache keeps what was decoded of immutable objects, bounded by its memory: what was not used for
// the longest time goes first. What is in use may exceed the bound. It is safe for concurrent use.
type Cache struct {
	limit   int64
	flights fetch.Flight[Sized]

	mu      sync.Mutex
	entries *lru.Map[Sized]
}

// NewCache returns an empty cache of limit bytes.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, entries: lru.New[Sized](limit)}
}

// Bytes is the memory that the cache holds.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Used()
}

// Get returns the value of key, calling load for it if it is not there; of several calls at a time
// one does. hit says that it was there. An error is not kept.
func Get[T Sized](ctx context.Context, c *Cache, key string, load func() (T, error)) (value T, hit bool, err error) {
	if v := c.get(key); v != nil {
		return v.(T), true, nil
	}
	v, err := c.flights.Do(ctx, key, func() (Sized, error) {
		if v := c.get(key); v != nil { // it came between the look above and now
			return v, nil
		}
		v, err := load()
		if err == nil {
			c.add(key, v)
		}
		return v, err
	})
	if err != nil {
		return value, false, err
	}
	return v.(T), false, nil
}

func (c *Cache) get(key string) Sized {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries.Get(key); e != nil {
		return e.Value
	}
	return nil
}

// add keeps a value, unless it is too large: it would only push out all others.
func (c *Cache) add(key string, v Sized) {
	cost := v.Bytes() + int64(len(key))
	if cost > c.limit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries.Get(key) == nil {
		c.entries.Add(key, v, cost)
		c.entries.Evict(0)
	}
}
