package compact

import (
	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/rollup"
	"github.com/promlake/promlake/internal/series"
)

// sink writes merged series to a block and, at level 24h, to its rollups.
type sink struct {
	view   *series.View
	block  *block.Writer
	rollup *rollup.Writer // nil at other levels
}

func newSink(files *blockio.Writer, view *series.View, o block.Options, rollups bool) (*sink, error) {
	w, err := block.NewWriter(files, view, o)
	if err != nil {
		return nil, err
	}
	s := &sink{view: view, block: w}
	if rollups && o.Level == key.L24h {
		s.rollup, err = rollup.NewWriter(files, o.Encoders)
	}
	return s, err
}

// Append implements merge.Sink.
func (s *sink) Append(ref series.Ref, x *block.Samples) error {
	if err := s.block.Append(ref, x); err != nil {
		return err
	}
	if s.rollup == nil || len(x.TS) == 0 {
		return nil
	}
	return s.rollup.Append(s.view.Metrics[s.view.Metric(ref)], s.block.LastID(), x.TS, x.V, x.ST)
}

// close ends the block; meta.json is its last file.
func (s *sink) close(h block.Header) (block.Meta, error) {
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
