package request

import (
	"log/slog"
	"sync"
)

// Totals are what reads took from the store's objects. Considered is what the objects that overlap
// the asked time hold, Read the part that the plan did not rule out.
type Totals struct {
	Segments  int64 `json:"segments"`  // segments read
	Blocks    int64 `json:"blocks"`    // blocks read
	RowGroups Share `json:"rowGroups"` // of the blocks' sample, histogram and exemplar files
	Bytes     Share `json:"bytes"`     // of segments and of the blocks' files

	KeptSlices int64 `json:"keptSlices,omitempty"` // slices of range queries whose answers were kept
}

// Share is a part of a whole.
type Share struct {
	Considered int64 `json:"considered"`
	Read       int64 `json:"read"`
}

func (s *Share) add(o Share) {
	s.Considered += o.Considered
	s.Read += o.Read
}

// LogValue implements slog.LogValuer.
func (t Totals) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("segments", t.Segments), slog.Int64("blocks", t.Blocks),
		slog.Int64("row_groups_read", t.RowGroups.Read), slog.Int64("row_groups_considered", t.RowGroups.Considered),
		slog.Int64("bytes_read", t.Bytes.Read), slog.Int64("bytes_considered", t.Bytes.Considered), slog.Int64("kept_slices", t.KeptSlices),
	)
}

// Add adds o to t.
func (t *Totals) Add(o Totals) {
	t.Segments += o.Segments
	t.Blocks += o.Blocks
	t.RowGroups.add(o.RowGroups)
	t.Bytes.add(o.Bytes)
	t.KeptSlices += o.KeptSlices
}

// Stats sums the totals of several reads. It is safe for concurrent use.
type Stats struct {
	mu sync.Mutex
	t  Totals
}

// Add adds what one read took.
func (s *Stats) Add(t Totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Add(t)
}

// Totals returns the sums so far.
func (s *Stats) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t
}
