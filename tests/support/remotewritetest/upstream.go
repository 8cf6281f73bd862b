package remotewritetest

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Samples are the samples that a message holds, by kind and label set, in their order.
type Samples map[string][]string

// The kinds, which begin the keys of Samples.
const (
	FloatsOf = "floats "
	HistsOf  = "hists "
)

// Rules are those for a request that came at SomeTime.
func Rules() remotewrite.Rules {
	l := remotewrite.DefaultLimits()
	return remotewrite.Rules{Limits: &l, TimeRange: l.TimeRange(time.UnixMilli(SomeTime))}
}

// Labels prints the labels of a series.
func Labels(v *series.View, r series.Ref) string {
	b := labels.NewBuilder(labels.EmptyLabels())
	b.Set("__name__", v.Metrics[v.Metric(r)])
	for _, p := range v.Pairs(r) {
		b.Set(v.Names[p.Name], v.Values[p.Name][p.Value])
	}
	return b.Labels().String()
}

// Add adds a sample.
func (s Samples) Add(of, sample string) { s[of] = append(s[of], sample) }

func (s Samples) hist(lset string, h segment.Hist) {
	allowed := Rules().TimeRange
	if allowed.Check(h.T) != nil || allowed.CheckStart(h.ST) != nil {
		return
	}
	var schema int32
	var valid interface {
		Validate() error
		ReduceResolution(int32) error
	} = h.H
	if h.FH != nil {
		valid, schema = h.FH, h.FH.Schema
	} else {
		schema = h.H.Schema
	}
	if schema > 8 && schema <= 52 && valid.ReduceResolution(8) != nil {
		return
	}
	if valid.Validate() == nil {
		s.Add(HistsOf+lset, HistBytes(h))
	}
}

func (s Samples) float(lset string, f segment.Float) {
	allowed := Rules().TimeRange
	if allowed.Check(f.T) == nil && allowed.CheckStart(f.ST) == nil {
		s.Add(FloatsOf+lset, FloatText(f))
	}
}

// Upstream decodes a message with upstream's generated code and keeps what breaks no rule.
func Upstream(version remotewrite.Protocol, msg []byte) (Samples, error) {
	out := Samples{}
	if version == remotewrite.V1 {
		var req prompb.WriteRequest
		if err := req.Unmarshal(msg); err != nil {
			return nil, err
		}
		for _, ts := range req.Timeseries {
			var lset []series.Label
			for _, l := range ts.Labels {
				lset = append(lset, series.Label{Name: l.Name, Value: l.Value})
			}
			name, ok := accepted(lset)
			if !ok {
				continue
			}
			for _, s := range ts.Samples {
				out.float(name, segment.Float{T: s.Timestamp, V: s.Value})
			}
			for _, h := range ts.Histograms {
				if h.IsFloatHistogram() {
					out.hist(name, segment.Hist{T: h.Timestamp, FH: h.ToFloatHistogram()})
				} else {
					out.hist(name, segment.Hist{T: h.Timestamp, H: h.ToIntHistogram()})
				}
			}
		}
		return out, nil
	}
	var req writev2.Request
	if err := req.Unmarshal(msg); err != nil {
		return nil, err
	}
	for _, ts := range req.Timeseries {
		name, ok := resolved(req.Symbols, ts.LabelsRefs)
		if !ok {
			continue
		}
		for _, s := range ts.Samples {
			out.float(name, segment.Float{T: s.Timestamp, V: s.Value, ST: s.StartTimestamp})
		}
		for _, h := range ts.Histograms {
			if h.IsFloatHistogram() {
				out.hist(name, segment.Hist{T: h.Timestamp, ST: h.StartTimestamp, FH: h.ToFloatHistogram()})
			} else {
				out.hist(name, segment.Hist{T: h.Timestamp, ST: h.StartTimestamp, H: h.ToIntHistogram()})
			}
		}
	}
	return out, nil
}

func resolved(symbols []string, refs []uint32) (string, bool) {
	if len(refs)%2 != 0 {
		return "", false
	}
	var lset []series.Label
	for i := 0; i < len(refs); i += 2 {
		if int(refs[i]) >= len(symbols) || int(refs[i+1]) >= len(symbols) {
			return "", false
		}
		lset = append(lset, series.Label{Name: symbols[refs[i]], Value: symbols[refs[i+1]]})
	}
	return accepted(lset)
}

func accepted(lset []series.Label) (string, bool) {
	kept, err := Rules().Limits.CheckLabels(lset)
	if err != nil {
		return "", false
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, l := range kept {
		b.Set(l.Name, l.Value)
	}
	return b.Labels().String(), true
}

// HistBytes prints a native histogram sample, or the error of its encoding.
func HistBytes(h segment.Hist) string {
	b, err := segment.EncodeHist(h)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %x", h.T, b)
}
