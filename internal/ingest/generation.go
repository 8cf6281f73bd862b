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
	stored  descriptions // that flushed segments of this generation carry
	queued  descriptions // that messages of this generation carry
}

func newGeneration(seed uint64, discard func(reason, int)) *generation {
	return &generation{table: series.NewTable(seed), discard: discard}
}

// bytes estimates the memory of what was learned.
func (g *generation) bytes() int64 {
	g.table.RLock()
	defer g.table.RUnlock()
	return g.table.Bytes() + g.stored.size() + g.queued.size()
}

// descriptions are metadata that is durable already. It is safe for concurrent use.
type descriptions struct {
	mu       sync.Mutex
	byFamily map[string]segment.Metadata
	bytes    int64 // memory that they take, roughly
}

// has says whether the metric family is described so.
func (d *descriptions) has(m segment.Metadata) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, ok := d.byFamily[m.Metric]
	return ok && old == m
}

// note records metadata that is durable now.
func (d *descriptions) note(ms []segment.Metadata) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byFamily == nil {
		d.byFamily = map[string]segment.Metadata{}
	}
	for _, m := range ms {
		d.bytes += metadataBytes(m) - metadataBytes(d.byFamily[m.Metric])
		d.byFamily[m.Metric] = m
	}
}

func (d *descriptions) size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

// metadataBytes estimates the memory of an entry of descriptions; that of one that is not there is 0.
func metadataBytes(m segment.Metadata) int64 {
	const perEntry = 160
	if m.Metric == "" {
		return 0
	}
	return perEntry + int64(len(m.Metric)+len(m.Type)+len(m.Help)+len(m.Unit))
}
