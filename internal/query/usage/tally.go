package usage

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// maxLength is the longest name or pattern that is counted, in bytes.
	maxLength = 4096
	// entryBytes is about what an entry takes in memory beside its name.
	entryBytes = 160
)

// Asked is how often queries asked for something.
type Asked struct {
	Queries uint64 `json:"queries"`
	Last    int64  `json:"last"` // ms since the Unix epoch, of the newest of them; 0: none did
}

func (a Asked) plus(b Asked) Asked {
	return Asked{a.Queries + b.Queries, max(a.Last, b.Last)}
}

// tally is what queries asked for, by kind and name.
type tally [kinds]map[string]Asked

func (t *tally) add(k kind, name string, a Asked) {
	if t[k] == nil {
		t[k] = map[string]Asked{}
	}
	t[k][name] = t[k][name].plus(a)
}

func (t *tally) addAll(of *tally) {
	for k := range kinds {
		for name, a := range of[k] {
			t.add(k, name, a)
		}
	}
}

func (t *tally) clone() (out tally) {
	for k := range kinds {
		out[k] = maps.Clone(t[k])
	}
	return out
}

// size is about what the entries take in memory, in bytes.
func (t *tally) size() (n int64) {
	for k := range kinds {
		for name := range t[k] {
			n += entrySize(name)
		}
	}
	return n
}

// entrySize is about what an entry takes in memory, in bytes.
func entrySize(name string) int64 { return entryBytes + int64(len(name)) }

// prune removes the entries that were not asked for since a time (ms), and, if the rest takes more
// than limit bytes, those that were asked for least recently, until it takes nine tenths of limit.
// It returns the last time (ms) at which a query asked for something that was removed; 0: nothing
// was.
func (t *tally) prune(since, limit int64) (last int64) {
	type entry struct {
		kind kind
		name string
		last int64
	}
	var entries []entry
	for k := range kinds {
		for name, a := range t[k] {
			entries = append(entries, entry{k, name, a.Last})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
	used, most := t.size(), limit
	if used > limit {
		most = limit / 10 * 9
	}
	for _, e := range entries {
		if e.last >= since && used <= most {
			break
		}
		delete(t[e.kind], e.name)
		used, last = used-entrySize(e.name), e.last
	}
	return last
}
