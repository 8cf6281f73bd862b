package answers

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query/request"
)

// Codec returns the same bytes as upstream's JSON codec. It encodes float matrices on all
// processors, formats each time once, and uses the memory of answers again: buffers that grow step
// by step leave more garbage than all else that a small query allocates.
type Codec struct{ v1.JSONCodec }

// matrixHead precedes the series of a matrix in an answer.
const matrixHead = `{"status":"success","data":{"resultType":"matrix","result":[`

// matrixTail follows them in an answer that has nothing else.
const matrixTail = `]}}`

// compared is v1.QueryData with a comparison that has more than upstream's.
type compared struct {
	ResultType parser.ValueType    `json:"resultType"`
	Result     parser.Value        `json:"result"`
	Stats      stats.QueryStats    `json:"stats,omitempty"`
	Cost       *request.Comparison `json:"cost"`
}

// Encode implements v1.Codec.
func (c Codec) Encode(resp *v1.Response) ([]byte, error) {
	data, _ := resp.Data.(*v1.QueryData)
	if data == nil {
		return c.JSONCodec.Encode(resp)
	}
	to, _ := data.Stats.(*answer)
	if to != nil {
		data.Stats = to.QueryStats
		if to.cost != nil {
			around := *resp
			around.Data = &compared{data.ResultType, data.Result, data.Stats, to.cost}
			return c.JSONCodec.Encode(&around)
		}
	}
	m, _ := data.Result.(promql.Matrix)
	if len(m) == 0 || slices.ContainsFunc(m, func(s promql.Series) bool { return len(s.Histograms) > 0 }) {
		return c.JSONCodec.Encode(resp)
	}
	if data.Stats == nil && data.ResultType == parser.ValueTypeMatrix && (resp.Status == "success" && resp.ErrorType == "" && resp.Error == "" && len(resp.Warnings) == 0 && len(resp.Infos) == 0) {
		return c.series(m, []byte(matrixTail), to)
	}
	empty, around := *data, *resp
	empty.Result, around.Data = promql.Matrix{}, &empty
	frame, err := c.JSONCodec.Encode(&around)
	if err != nil || !bytes.HasPrefix(frame, []byte(matrixHead+"]")) {
		return c.JSONCodec.Encode(resp)
	}
	return c.series(m, frame[len(matrixHead):], to)
}

// series returns matrixHead, the elements of a float matrix, and tail. All processors share the
// work of a large matrix, each a small part at a time, because parts are appended to the first one.
// The memory is that of an answer, unless to is nil. If the answer is streamed, all but tail is sent.
func (c Codec) series(m promql.Matrix, tail []byte, to *answer) ([]byte, error) {
	total := pointsOf(m)
	n := min(runtime.GOMAXPROCS(0), len(m), 1+total/partPoints)
	parts, errs := make([]*scratch, n), make([]error, n)
	for k := range parts {
		parts[k] = scratches.Get().(*scratch)
	}
	streams := to != nil && to.to != nil && total >= streamPoints
	all := parts[0]
	all.out = append(all.out, matrixHead...)
	for from := 0; from < len(m); {
		first := from == 0
		var wg sync.WaitGroup
		for k, p := range parts {
			elements := m[from:partEnd(m, from, n == 1 && !streams)]
			from += len(elements)
			points := 0 // that the part makes room for
			switch {
			case first && k == 0 && !streams:
				points = total
			case first:
				points = pointsOf(elements)
			}
			if len(elements) > 0 && (k > 0 || !first) {
				p.out = append(p.out, ',')
			}
			part := func() {
				errs[k] = errors.Join(errs[k], telemetry.Guard(func() error { return c.part(p, elements, points) })())
			}
			if n == 1 {
				part()
			} else {
				wg.Go(part)
			}
		}
		wg.Wait()
		if streams {
			if to.to.sendParts(parts, errs) != nil {
				break // nobody reads the rest
			}
			continue
		}
		for _, p := range parts[1:] {
			all.out = append(all.out, p.out...)
			p.out = p.out[:0]
		}
	}
	for _, p := range parts[1:] {
		p.release()
	}
	all.out = append(all.out, tail...)
	if to != nil {
		to.held = all
		return all.out, errors.Join(errs...)
	}
	return all.answer(), errors.Join(errs...)
}

// partPoints is the number of points that justify another processor, and about that of a part.
const partPoints = 20_000

// partEnd returns the end of the part of m that begins at from.
func partEnd(m promql.Matrix, from int, whole bool) int {
	if whole {
		return len(m)
	}
	end := from
	for points := 0; end < len(m) && points < partPoints; end++ {
		points += len(m[end].Floats)
	}
	return end
}

func pointsOf(m promql.Matrix) (n int) {
	for i := range m {
		n += len(m[i].Floats)
	}
	return n
}

// part appends elements to the output of p. It makes room for that many points, by the size of the
// first series.
func (c Codec) part(p *scratch, m promql.Matrix, points int) error {
	out := p.out
	if len(m) > 0 && !p.knows(m[0].Floats) {
		p.learn(nil)
	}
	for i, s := range m {
		if i > 0 {
			out = append(out, ',')
		}
		before := len(out)
		var err error
		if out, err = c.metric(out, s); err != nil {
			return err
		}
		out = p.values(out, s.Floats)
		out = append(out, '}')
		if n := len(s.Floats); points > 0 && n > 0 { // once
			out = slices.Grow(out, (len(out)-before+n)*max(0, points-n)/n)
			points = 0
		}
	}
	p.out = out
	return nil
}

// scratch is what encodes a part of an answer.
type scratch struct {
	out []byte
	stamps
}

// scratches are those whose memory the next answers use.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// scratchBytes is the largest output whose memory is used again. Answers of dashboards are smaller,
// and the memory of a large answer is not held between answers.
const scratchBytes = 1 << 20

// answer returns the output, which the caller owns, and releases p.
func (p *scratch) answer() []byte {
	out := p.out
	if cap(out) <= scratchBytes {
		out = bytes.Clone(out)
	}
	p.release()
	return out
}

// release gives the memory to the next answers.
func (p *scratch) release() {
	if cap(p.out) > scratchBytes {
		p.out = nil
	}
	p.out = p.out[:0]
	scratches.Put(p)
}

// metric appends the JSON of a series up to its points.
func (c Codec) metric(out []byte, s promql.Series) ([]byte, error) {
	plain, begin := true, len(out)
	out = append(out, `{"metric":{`...)
	s.Metric.Range(func(l labels.Label) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), l.Name...), `":"`...)
		out = append(append(out, l.Value...), '"')
		plain = plain && isPlain(l.Name) && isPlain(l.Value)
	})
	if plain {
		return append(out, '}'), nil
	}
	const before, after = `{"status":"","data":`, `}}`
	b, err := c.JSONCodec.Encode(&v1.Response{Data: promql.Series{Metric: s.Metric}})
	if err != nil {
		return nil, err
	}
	return append(out[:begin], b[len(before):len(b)-len(after)]...), nil
}

// isPlain reports whether a text stands in JSON as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}
