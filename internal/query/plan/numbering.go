package plan

import (
	"bytes"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
)

// numbering numbers keys in the order in which they come first.
type numbering struct {
	n    uint32            // keys
	text []byte            // of up to fewEntries keys, one after the other
	ends [fewEntries]int   // of these in text
	more map[string]uint32 // all, if they are more
}

// of returns the number of a key, and whether it is new.
func (x *numbering) of(key []byte) (number uint32, isNew bool) {
	if x.more != nil {
		if number, ok := x.more[string(key)]; ok {
			return number, false
		}
		x.more[string(key)] = x.n
		x.n++
		return x.n - 1, true
	}
	from := 0
	for i := range x.n {
		if bytes.Equal(x.text[from:x.ends[i]], key) {
			return i, false
		}
		from = x.ends[i]
	}
	if x.n < fewEntries {
		x.text = append(x.text, key...)
		x.ends[x.n] = len(x.text)
		x.n++
		return x.n - 1, true
	}
	x.more, from = make(map[string]uint32, 2*fewEntries), 0
	for i, end := range x.ends {
		x.more[string(x.text[from:end])] = uint32(i)
		from = end
	}
	return x.of(key)
}

// tools are what the labels of nodes are made with.
type tools struct {
	builder *labels.Builder
	key     []byte
	numbers numbering
}

var sparedTools = sync.Pool{New: func() any { return &tools{builder: labels.NewBuilder(labels.EmptyLabels())} }}

// takeTools returns tools that nobody uses.
func takeTools() *tools { return sparedTools.Get().(*tools) }

// release lets others have the tools.
func (t *tools) release() {
	t.builder.Reset(labels.EmptyLabels())
	t.numbers = numbering{text: t.numbers.text[:0]}
	sparedTools.Put(t)
}
