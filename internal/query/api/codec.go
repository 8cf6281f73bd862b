package api

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/prometheus/promql"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// codec returns the same bytes as upstream's JSON codec. It encodes float matrices on all
// processors, formats each time once, and fills one buffer of the right size: growing a buffer step
// by step is most of the garbage of a large answer.
type codec struct{ v1.JSONCodec }

// matrixHead precedes the series of a matrix in an answer.
const matrixHead = `{"status":"success","data":{"resultType":"matrix","result":[`

// Encode implements v1.Codec.
func (c codec) Encode(resp *v1.Response) ([]byte, error) {
	data, _ := resp.Data.(*v1.QueryData)
	if data == nil {
		return c.JSONCodec.Encode(resp)
	}
	m, _ := data.Result.(promql.Matrix)
	if len(m) == 0 || slices.ContainsFunc(m, func(s promql.Series) bool { return len(s.Histograms) > 0 }) {
		return c.JSONCodec.Encode(resp)
	}
	empty, around := *data, *resp
	empty.Result, around.Data = promql.Matrix{}, &empty
	frame, err := c.JSONCodec.Encode(&around)
	if err != nil || !bytes.HasPrefix(frame, []byte(matrixHead+"]")) {
		return c.JSONCodec.Encode(resp)
	}
	out, err := c.series([]byte(matrixHead), m)
	return append(out, frame[len(matrixHead):]...), err
}

// series appends the elements of a float matrix; all processors share the work of a large one.
func (c codec) series(out []byte, m promql.Matrix) ([]byte, error) {
	total := 0
	for _, s := range m {
		total += len(s.Floats)
	}
	n := min(runtime.GOMAXPROCS(0), len(m), 1+total/partPoints)
	parts, errs := make([][]byte, n), make([]error, n)
	parts[0] = out
	var wg sync.WaitGroup
	for k := range n {
		from, to, points := k*len(m)/n, (k+1)*len(m)/n, total/n
		if k == 0 {
			points = total // the other parts are appended to the first
		}
		wg.Go(func() { parts[k], errs[k] = c.part(parts[k], m[from:to], points) })
	}
	wg.Wait()
	out = parts[0]
	for _, p := range parts[1:] {
		out = append(append(out, ','), p...)
	}
	return out, errors.Join(errs...)
}

// partPoints is the number of points that justify another processor.
const partPoints = 20_000

// part appends elements. With points > 0 it grows out for that many points, by the size of the
// first series.
func (c codec) part(out []byte, m promql.Matrix, points int) ([]byte, error) {
	at := usedStamps.Get().(*stamps)
	defer usedStamps.Put(at)
	at.learn(nil)
	for i, s := range m {
		if i > 0 {
			out = append(out, ',')
		}
		metric, err := c.metric(s)
		if err != nil {
			return nil, err
		}
		before := len(out)
		out = append(out, metric...)
		out = at.values(out, s.Floats)
		out = append(out, '}')
		if n := len(s.Floats); points > 0 && n > 0 { // once
			out = slices.Grow(out, (len(out)-before+n)*points/n)
			points = 0
		}
	}
	return out, nil
}

// metric returns the JSON of a series up to its points.
func (c codec) metric(s promql.Series) ([]byte, error) {
	const before, after = `{"status":"","data":`, `}}`
	b, err := c.JSONCodec.Encode(&v1.Response{Data: promql.Series{Metric: s.Metric}})
	if err != nil {
		return nil, err
	}
	return b[len(before) : len(b)-len(after)], nil
}

// stamps formats the points of series. It keeps the text of each time, because most series have the
// same times as the one before.
type stamps struct {
	times []int64 // ascending
	text  []byte  // of a point at each of times, up to its value
	ends  []int   // of the texts in text
}

// usedStamps are stamps whose memory the next answers use.
var usedStamps = sync.Pool{New: func() any { return new(stamps) }}

// learn replaces the times by those of points.
func (s *stamps) learn(points []promql.FPoint) {
	s.times, s.text, s.ends = s.times[:0], s.text[:0], s.ends[:0]
	for _, p := range points {
		s.text = appendTime(s.text, p.T)
		s.times, s.ends = append(s.times, p.T), append(s.ends, len(s.text))
	}
}

// at returns the text of the time with index k.
func (s *stamps) at(k int) []byte {
	if k == 0 {
		return s.text[:s.ends[0]]
	}
	return s.text[s.ends[k-1]:s.ends[k]]
}

// values appends the points of a series.
func (s *stamps) values(out []byte, points []promql.FPoint) []byte {
	if len(points) == 0 {
		return out
	}
	if len(points) > len(s.times) {
		s.learn(points)
	}
	out = append(out, `,"values":[`...)
	k := 0
	for i, p := range points {
		if i > 0 {
			out = append(out, ',')
		}
		for k < len(s.times) && s.times[k] < p.T {
			k++
		}
		if k < len(s.times) && s.times[k] == p.T {
			out = append(out, s.at(k)...)
		} else {
			out = appendTime(out, p.T)
		}
		out = append(appendFloat(out, p.F), `"]`...)
	}
	return append(out, ']')
}

// appendTime appends a point at t (ms), up to its value.
// Source: MarshalTimestamp in upstream's util/jsonutil.
func appendTime(out []byte, t int64) []byte {
	out = append(out, '[')
	if t < 0 {
		out = append(out, '-')
		t = -t
	}
	out = strconv.AppendInt(out, t/1000, 10)
	if ms := t % 1000; ms != 0 {
		out = append(out, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	}
	return append(out, `,"`...)
}

// appendFloat appends the text of a value.
// Source: MarshalFloat in upstream's util/jsonutil.
func appendFloat(out []byte, f float64) []byte {
	const exact = 1 << 53 // integers below it are exact
	if n := int64(f); float64(n) == f && n != 0 && n > -exact && n < exact {
		return strconv.AppendInt(out, n, 10)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(out, f, format, -1, 64)
}
