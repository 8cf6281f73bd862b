package blockio

import (
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Sink implements merge.Sink.
type Sink struct {
	view   *series.View
	block  *block.Writer
	rollup *rollup.Writer // nil at other levels
}

// NewSink begins a block whose label sets are references into view. rollups has no effect at other
// levels than 24h.
func NewSink(files block.Files, view *series.View, o block.Options, rollups bool) (*Sink, error) {
	w, err := block.NewWriter(files, view, o)
	if err != nil {
		return nil, err
	}
	s := &Sink{view: view, block: w}
	if rollups && o.Level == key.L24h {
		s.rollup, err = rollup.NewWriter(files, o.Encoders)
	}
	return s, err
}

// Append implements merge.Sink.
func (s *Sink) Append(ref series.Ref, x *block.Samples) error {
	if err := s.block.Append(ref, x); err != nil {
		return err
	}
	if s.rollup == nil || len(x.TS) == 0 {
		return nil
	}
	return s.rollup.Append(s.view.Metrics[s.view.Metric(ref)], s.block.LastID(), x.TS, x.V, x.ST)
}

// Close ends the block; meta.json is its last file.
func (s *Sink) Close(h block.Header) (block.Meta, error) {
	if s.rollup != nil {
		files, err := s.rollup.Close()
		if err != nil {
			return block.Meta{}, err
		}
		for _, f := range files {
			s.block.AddFile(f.Name, f.Bytes)
		}
	}
	return s.block.Close(h)
}

// Metadata writes the descriptions of metric families, as block.Writer does.
func (s *Sink) Metadata(m []segment.Metadata) error { return s.block.Metadata(m) }
