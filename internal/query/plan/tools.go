package plan

import (
	"sync"

	"github.com/prometheus/prometheus/model/labels"
)

// tools are what the labels of nodes are made with.
type tools struct {
	builder *labels.Builder
	key     []byte
	numbers map[string]uint32 // of keys, in the order in which they come first
}

var sparedTools = sync.Pool{New: func() any {
	return &tools{builder: labels.NewBuilder(labels.EmptyLabels()), numbers: map[string]uint32{}}
}}

// keptNumbers is the number of keys up to which the memory of their numbers is used again.
const keptNumbers = 1 << 10

// takeTools returns tools that nobody uses.
func takeTools() *tools { return sparedTools.Get().(*tools) }

// release lets others have the tools.
func (t *tools) release() {
	t.builder.Reset(labels.EmptyLabels())
	if len(t.numbers) > keptNumbers {
		t.numbers = map[string]uint32{}
	}
	clear(t.numbers)
	sparedTools.Put(t)
}

// number returns the number of the key, and whether it is new.
func (t *tools) number() (number uint32, isNew bool) {
	number, known := t.numbers[string(t.key)]
	if !known {
		number = uint32(len(t.numbers))
		t.numbers[string(t.key)] = number
	}
	return number, !known
}
