package index

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/fetch"
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
	idle    time.Duration // 0: without end
	now     func() time.Time
	flights fetch.Flight[Sized]

	mu      sync.Mutex
	entries *memory.LRU[string, *held]
}

// held is a value in a Cache.
type held struct {
	value Sized
	used  time.Time // when it was asked for last
}

// NewCache returns an empty cache of limit bytes. When it takes a value, it forgets those that
// nobody has asked for in the time idle, also if there is room: a server needs no memory for what
// its rules and panels do not read any more. 0: it keeps them.
func NewCache(limit int64, idle time.Duration, now func() time.Time) *Cache {
	return &Cache{limit: limit, idle: idle, now: now, entries: memory.NewLRU[string, *held](limit)}
}

// PartKey returns the key of something else than the table of an object that a Cache holds: what it
// is, the key of the object's file, and of which part of the file. The table's key is that of the
// file.
func PartKey(what, object, part string) string { return what + ofObject + object + endObject + part }

// ofObject and endObject enclose the key of an object in that of a part of it.
const ofObject, endObject = " of ", "\n"

// objectOf returns the key of the object of which a key in a Cache is.
func objectOf(key string) string {
	if _, object, ok := strings.Cut(key, ofObject); ok {
		key = object
	}
	object, _, _ := strings.Cut(key, endObject)
	return object
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

// Remove forgets the tables of objects, and everything else that is held of them.
func (c *Cache) Remove(objects ...string) {
	if len(objects) == 0 {
		return
	}
	gone := make(map[string]bool, len(objects))
	for _, o := range objects {
		gone[o] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.RemoveIf(func(key string) bool { return gone[objectOf(key)] })
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
			c.Add(key, v)
		}
		return v, err
	})
	if err != nil {
		return value, false, err
	}
	return v.(T), false, nil
}

// Peek returns the value of key if the cache holds it, or the zero value.
func Peek[T Sized](c *Cache, key string) (value T) {
	if v := c.get(key); v != nil {
		return v.(T)
	}
	return value
}

// Held calls take with the values of those of n keys that the cache holds, in their order, and
// returns the numbers of the others. take must not use the cache.
func Held[T Sized](c *Cache, n int, key func(i int) string, take func(i int, v T)) (others []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for i := range n {
		if e := c.entries.Get(key(i)); e != nil {
			e.Value.used = now
			take(i, e.Value.value.(T))
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
		e.Value.used = c.now()
		return e.Value.value
	}
	return nil
}

// Add adds a value, unless it alone exceeds the limit and would evict all others.
func (c *Cache) Add(key string, v Sized) {
	cost := v.Bytes() + int64(len(key))
	if cost > c.limit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries.Get(key) != nil {
		return
	}
	now := c.now()
	c.entries.Add(key, &held{v, now}, cost)
	c.entries.Evict(0)
	for e := c.entries.Oldest(); c.idle > 0 && now.Sub(e.Value.used) > c.idle; e = c.entries.Oldest() {
		c.entries.Remove(e)
	}
}
