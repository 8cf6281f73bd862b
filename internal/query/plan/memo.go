package plan

// memo is a map. Those of most queries are so small that a search takes less than a map's memory.
type memo[K comparable, V any] struct {
	few  []entry[K, V]
	more map[K]V // beyond fewEntries
}

type entry[K comparable, V any] struct {
	value V
	key   K
}

// fewEntries is the number of entries that are searched one by one.
const fewEntries = 16

// get returns the value of a key, and whether it has one.
func (m *memo[K, V]) get(key K) (value V, ok bool) {
	for i := range m.few {
		if m.few[i].key == key {
			return m.few[i].value, true
		}
	}
	value, ok = m.more[key]
	return value, ok
}

// add sets the value of a key that has none.
func (m *memo[K, V]) add(key K, value V) {
	switch {
	case m.few == nil:
		m.few = make([]entry[K, V], 0, fewEntries/4)
	case len(m.few) == fewEntries && m.more == nil:
		m.more = map[K]V{}
	}
	if len(m.few) < fewEntries {
		m.few = append(m.few, entry[K, V]{value, key})
		return
	}
	m.more[key] = value
}
