package index

import (
	"context"
	"sync"

	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/lru"
)

// Sized is a value that a Cache can hold.
type Sized interface {
	Bytes() int64 // approximate size in memory
}

// Cache holds decoded immutable objects within a bound on memory; it evicts the least recently used
// first. The bound does not include values that only callers still hold. It is safe for concurrent
// use.
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

// Limit returns the bytes that the cache may hold.
func (c *Cache) Limit() int64 { return c.limit }

// Bytes returns the memory of the values that the cache holds.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Used()
}

// Has reports whether the cache holds the value of key.
func (c *Cache) Has(key string) bool { return c.get(key) != nil }

// Remove forgets the values of keys.
func (c *Cache) Remove(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		if e := c.entries.Get(k); e != nil {
			c.entries.Remove(e)
		}
	}
}

// Get returns the value of key. If the cache does not hold it, Get calls load; concurrent calls for
// one key share one call of load. hit reports whether the cache held the value. An error is not
// cached.
func Get[T Sized](ctx context.Context, c *Cache, key string, load func() (T, error)) (value T, hit bool, err error) {
	if v := c.get(key); v != nil {
		return v.(T), true, nil
	}
	v, err := c.flights.Do(ctx, key, func() (Sized, error) {
		if v := c.get(key); v != nil { // it was added after the first check
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

// Held calls take with the values of those of n keys that the cache holds, in their order, and
// returns the numbers of the others. take must not use the cache.
func Held[T Sized](c *Cache, n int, key func(i int) string, take func(i int, v T)) (others []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range n {
		if e := c.entries.Get(key(i)); e != nil {
			take(i, e.Value.(T))
		} else {
			others = append(others, i)
		}
	}
	return others
}

func (c *Cache) get(key string) Sized {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries.Get(key); e != nil {
		return e.Value
	}
	return nil
}

// add adds a value, unless it alone exceeds the limit and would evict all others.
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
