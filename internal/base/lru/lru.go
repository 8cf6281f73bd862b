// Package lru is a map that is bounded by what its entries cost.
package lru

import "container/list"

// Map forgets the least recently used entries. Pinned entries stay. The caller locks.
type Map[V any] struct {
	limit, used int64
	order       *list.List // front = most recently used; of *Entry[V]
	items       map[string]*list.Element
}

// Entry is a value in a Map. Whoever adds one to Pins takes it back.
type Entry[V any] struct {
	Value V
	Pins  int

	key  string
	cost int64
}

// New returns an empty map whose entries may cost limit together.
func New[V any](limit int64) *Map[V] {
	return &Map[V]{limit: limit, order: list.New(), items: map[string]*list.Element{}}
}

// Used returns what all entries cost.
func (m *Map[V]) Used() int64 { return m.used }

// Get returns the entry of key, now the most recently used, or nil.
func (m *Map[V]) Get(key string) *Entry[V] {
	el := m.items[key]
	if el == nil {
		return nil
	}
	m.order.MoveToFront(el)
	return el.Value.(*Entry[V])
}

// Add stores value under key, which must be absent, and returns its entry.
func (m *Map[V]) Add(key string, value V, cost int64) *Entry[V] {
	e := &Entry[V]{Value: value, key: key, cost: cost}
	m.items[key] = m.order.PushFront(e)
	m.used += cost
	return e
}

// Remove forgets an entry of the map.
func (m *Map[V]) Remove(e *Entry[V]) {
	if el := m.items[e.key]; el != nil && el.Value == e {
		m.order.Remove(el)
		delete(m.items, e.key)
		m.used -= e.cost
	}
}

// RemoveIf forgets the entries whose keys gone reports.
func (m *Map[V]) RemoveIf(gone func(key string) bool) {
	for k, el := range m.items {
		if gone(k) {
			m.Remove(el.Value.(*Entry[V]))
		}
	}
}

// Oldest returns the least recently used entry, or nil.
func (m *Map[V]) Oldest() *Entry[V] {
	if el := m.order.Back(); el != nil {
		return el.Value.(*Entry[V])
	}
	return nil
}

// Evict removes unpinned entries, oldest first, until the sum of the costs and more is within the
// limit, and returns them.
func (m *Map[V]) Evict(more int64) []*Entry[V] {
	var out []*Entry[V]
	for el := m.order.Back(); el != nil && m.used+more > m.limit; {
		prev := el.Prev()
		if e := el.Value.(*Entry[V]); e.Pins == 0 {
			m.Remove(e)
			out = append(out, e)
		}
		el = prev
	}
	return out
}
