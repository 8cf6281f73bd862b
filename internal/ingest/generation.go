package ingest

import (
	"sync"

	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
)

// generation is what a tenant's stage has learned: label sets and stored metadata. It only grows, and is replaced as a whole
// when a new window begins on the wall clock or when it has grown too large; that bounds its memory and costs only the
// learning anew. Batches keep the generation that they were decoded with.
type generation struct {
	table   *series.Table
	order   series.Order // owned by the tenant's flusher
	discard func(r reason, samples int)

	mu          sync.Mutex
	stored      map[string]segment.Metadata // by metric family: what a flushed segment of this generation says
	storedBytes int64                       // memory that stored takes, roughly
}

func newGeneration(seed uint64, discard func(reason, int)) *generation {
	return &generation{table: series.NewTable(seed), discard: discard, stored: map[string]segment.Metadata{}}
}

// storedMetadata says whether a flushed segment already describes the metric family so.
func (g *generation) storedMetadata(m segment.Metadata) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, ok := g.stored[m.Metric]
	return ok && old == m
}

// noteStored records metadata that is durable now.
func (g *generation) noteStored(ms []segment.Metadata) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range ms {
		g.storedBytes += metadataBytes(m) - metadataBytes(g.stored[m.Metric])
		g.stored[m.Metric] = m
	}
}

// metadataBytes estimates the memory of an entry of generation.stored; that of one that is not there is 0.
func metadataBytes(m segment.Metadata) int64 {
	const perEntry = 160
	if m.Metric == "" {
		return 0
	}
	return perEntry + int64(len(m.Metric)+len(m.Type)+len(m.Help)+len(m.Unit))
}

// bytes estimates the memory of what was learned.
func (g *generation) bytes() int64 {
	g.table.RLock()
	defer g.table.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.table.Bytes() + g.storedBytes
}
