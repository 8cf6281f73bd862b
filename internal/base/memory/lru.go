package memory

import "container/list"

// LRU is a map that is bounded by what its entries cost. It forgets the least recently used ones.
// Pinned entries stay. The caller locks.
type LRU[K comparable, V any] struct {
	limit, used int64
	order       *list.List // front = most recently used; of *Entry[K, V]
	items       map[K]*list.Element
}

// Entry is a value in an LRU. Whoever adds one to Pins takes it back.
type Entry[K comparable, V any] struct {
	Value V
	Pins  int

	key  K
	cost int64
}

// NewLRU returns an empty map whose entries may cost limit together.
func NewLRU[K comparable, V any](limit int64) *LRU[K, V] {
	return &LRU[K, V]{limit: limit, order: list.New(), items: map[K]*list.Element{}}
}

// Used returns what all entries cost.
func (m *LRU[K, V]) Used() int64 { return m.used }

// Get returns the entry of key, now the most recently used, or nil.
func (m *LRU[K, V]) Get(key K) *Entry[K, V] {
	el := m.items[key]
	if el == nil {
		return nil
	}
	m.order.MoveToFront(el)
	return el.Value.(*Entry[K, V])
}

// Add stores value under key, which must be absent, and returns its entry.
func (m *LRU[K, V]) Add(key K, value V, cost int64) *Entry[K, V] {
	e := &Entry[K, V]{Value: value, key: key, cost: cost}
	m.items[key] = m.order.PushFront(e)
	m.used += cost
	return e
}

// Remove forgets an entry of the map.
func (m *LRU[K, V]) Remove(e *Entry[K, V]) {
	if el := m.items[e.key]; el != nil && el.Value == e {
		m.order.Remove(el)
		delete(m.items, e.key)
		m.used -= e.cost
	}
}

// RemoveIf forgets the entries whose keys gone reports.
func (m *LRU[K, V]) RemoveIf(gone func(key K) bool) {
	for k, el := range m.items {
		if gone(k) {
			m.Remove(el.Value.(*Entry[K, V]))
		}
	}
}

// Oldest returns the least recently used entry, or nil.
func (m *LRU[K, V]) Oldest() *Entry[K, V] {
	if el := m.order.Back(); el != nil {
		return el.Value.(*Entry[K, V])
	}
	return nil
}

// Evict removes unpinned entries, oldest first, until the sum of the costs and more is within the
// limit, and returns them.
func (m *LRU[K, V]) Evict(more int64) []*Entry[K, V] {
	var out []*Entry[K, V]
	for el := m.order.Back(); el != nil && m.used+more > m.limit; {
		prev := el.Prev()
		if e := el.Value.(*Entry[K, V]); e.Pins == 0 {
			m.Remove(e)
			out = append(out, e)
		}
		el = prev
	}
	return out
}
