package query

import "container/list"

// lru is a map bounded by cost that forgets the least recently used entries. Pinned entries stay. The caller locks.
type lru[V any] struct {
	limit, used int64
	order       *list.List // front = most recently used; of *lruEntry[V]
	items       map[string]*list.Element
}

type lruEntry[V any] struct {
	key   string
	value V
	cost  int64
	pins  int
}

func newLRU[V any](limit int64) *lru[V] {
	return &lru[V]{limit: limit, order: list.New(), items: map[string]*list.Element{}}
}

// get returns the entry of key, now the most recently used, or nil.
func (l *lru[V]) get(key string) *lruEntry[V] {
	el := l.items[key]
	if el == nil {
		return nil
	}
	l.order.MoveToFront(el)
	return el.Value.(*lruEntry[V])
}

// add stores value under key, which must be absent, and returns its entry.
func (l *lru[V]) add(key string, value V, cost int64) *lruEntry[V] {
	e := &lruEntry[V]{key: key, value: value, cost: cost}
	l.items[key] = l.order.PushFront(e)
	l.used += cost
	return e
}

// evict removes unpinned entries, oldest first, until the cost is within the limit, and returns them.
func (l *lru[V]) evict() []*lruEntry[V] {
	var out []*lruEntry[V]
	for el := l.order.Back(); el != nil && l.used > l.limit; {
		prev := el.Prev()
		if e := el.Value.(*lruEntry[V]); e.pins == 0 {
			l.order.Remove(el)
			delete(l.items, e.key)
			l.used -= e.cost
			out = append(out, e)
		}
		el = prev
	}
	return out
}
