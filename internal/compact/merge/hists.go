package merge

import (
	"slices"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/live"
)

// histRuns are the histograms of all rows of a series, one row after the other.
type histRuns struct {
	samples []segment.Hist
	sources []int // aligned with samples
}

// inOrder reports whether the timestamps ascend, each once.
func (h *histRuns) inOrder() bool {
	for i := 1; i < len(h.samples); i++ {
		if h.samples[i-1].T >= h.samples[i].T {
			return false
		}
	}
	return true
}

// readHists reads the histograms of all rows.
func (m *merger) readHists() (err error) {
	h := &m.hists
	clear(h.samples) // releases those of the series before
	h.samples, h.sources = h.samples[:0], h.sources[:0]
	for _, a := range m.rows {
		s := m.sources[a.source]
		if s.rest == nil || s.rest[a.row].hists == 0 {
			continue
		}
		from := len(h.samples)
		if h.samples, err = s.content.hists(&s.rest[a.row], h.samples); err != nil {
			return s.fail(err)
		}
		m.stats.Read += int64(len(h.samples) - from)
		if gone := m.gone(a.source); len(gone) > 0 {
			kept := slices.DeleteFunc(h.samples[from:], func(x segment.Hist) bool { return live.Within(x.T, gone) })
			m.stats.Deleted += int64(len(h.samples) - from - len(kept))
			h.samples = h.samples[:from+len(kept)]
		}
		for range h.samples[from:] {
			h.sources = append(h.sources, int(a.source))
		}
	}
	return nil
}

// mixer merges the histograms of a series with each other and with its floats.
type mixer struct {
	samples []live.Sample
	floats  live.Run
	hists   []segment.Hist
}

func (x *mixer) merge(m *merger) {
	x.samples = m.floats.Samples(x.samples[:0])
	for i := range m.hists.samples {
		x.samples = append(x.samples, live.Sample{T: m.hists.samples[i].T, Object: m.hists.sources[i], Hist: true, At: i})
	}
	x.floats.Reset()
	clear(x.hists)
	x.hists = x.hists[:0]
	for _, s := range live.Pick(x.samples) {
		if s.Hist {
			x.hists = append(x.hists, m.hists.samples[s.At])
		} else {
			x.floats.Append(m.floats.Slice(s.At, s.At+1))
		}
	}
	m.out.TS, m.out.V, m.out.ST, m.out.Hists = x.floats.TS, x.floats.V, x.floats.ST, x.hists
	if !m.hasST {
		m.out.ST = nil
	}
}
