package merge

import (
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/internal/store/recent/head"
)

// Waiting makes one source of segments that follow one another in rank, whose samples only a head
// has, and whose label sets are in the table that Into knows. through is as in Gather. A merge may
// end with head.ErrGone.
func Waiting(name string, p *head.Part, through ulid.ULID) *Source {
	return &Source{name: name, refs: p.Refs, n: p.N, through: through, content: waitingContent{p}}
}

// WaitingBytes estimates the memory that a source of Waiting takes.
func WaitingBytes(p *head.Part) int64 {
	const perSeries = 12
	return perSeries * int64(len(p.Refs))
}

// waitingContent is the content of segments in a head. A row is at the index of its series.
type waitingContent struct{ *head.Part }

func (c waitingContent) floats(r row, dst *live.Run) (err error) {
	dst.TS, dst.V, err = c.Append(int(r.floatAt), dst.TS, dst.V)
	return err
}

func (waitingContent) hists(_ *rest, dst []segment.Hist) ([]segment.Hist, error) { return dst, nil }

func (waitingContent) exemplars(_ *rest, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	return dst, nil
}
