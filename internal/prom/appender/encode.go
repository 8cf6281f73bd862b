package appender

import (
	"fmt"

	"github.com/prometheus/common/model"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Encode returns transactions as one message io.prometheus.write.v2.Request, which
// remotewrite.Decode reads. Metadata is that of the series whose name is that of the family, or
// begins with it.
func Encode(txs []*Transaction) ([]byte, error) {
	symbols := writev2.NewSymbolTable()
	n := 0
	for _, t := range txs {
		n += len(t.Samples)
	}
	req := writev2.Request{Timeseries: make([]writev2.TimeSeries, 0, n)}
	for _, t := range txs {
		described := make(descriptions, len(t.Metadata))
		for _, m := range t.Metadata {
			described[m.Metric] = m
		}
		exemplars := t.Exemplars
		for i := range t.Samples {
			s := &t.Samples[i]
			ts := writev2.TimeSeries{LabelsRefs: symbols.SymbolizeLabels(s.Labels(), nil)}
			switch r := s.rare(); {
			case r.FH != nil:
				ts.Histograms = []writev2.Histogram{writev2.FromFloatHistogram(r.ST, s.T, r.FH)}
			case r.H != nil:
				ts.Histograms = []writev2.Histogram{writev2.FromIntHistogram(r.ST, s.T, r.H)}
			default:
				ts.Samples = []writev2.Sample{{Value: s.V, Timestamp: s.T, StartTimestamp: r.ST}}
			}
			for len(exemplars) > 0 && exemplars[0].Sample == i {
				e := exemplars[0]
				ts.Exemplars = append(ts.Exemplars, writev2.Exemplar{LabelsRefs: symbols.SymbolizeLabels(e.Labels, nil), Value: e.Value, Timestamp: e.Ts})
				exemplars = exemplars[1:]
			}
			if m, ok := described.of(s.Labels().Get(model.MetricNameLabel)); ok {
				ts.Metadata = writev2.Metadata{
					Type:    writev2.FromMetadataType(model.MetricType(m.Type)),
					HelpRef: symbols.Symbolize(m.Help), UnitRef: symbols.Symbolize(m.Unit),
				}
			}
			req.Timeseries = append(req.Timeseries, ts)
		}
	}
	req.Symbols = symbols.Symbols()
	b, err := req.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %d samples: %w", n, err)
	}
	return b, nil
}

// descriptions are the families of a transaction by name.
type descriptions map[string]*Family

// of returns the metadata of the family of a metric, which may add a suffix to the family's name.
func (f descriptions) of(metric string) (*Family, bool) {
	if m, ok := f[metric]; ok {
		return m, true
	}
	for _, suffix := range [...]string{"_bucket", "_count", "_sum"} {
		base := len(metric) - len(suffix)
		if base > 0 && metric[base:] == suffix {
			m, ok := f[metric[:base]]
			return m, ok
		}
	}
	return nil, false
}

// Join returns messages of Encode as one: that of the transactions of all of them.
func Join(messages [][]byte) ([]byte, error) {
	symbols := writev2.NewSymbolTable()
	var all writev2.Request
	for i, m := range messages {
		var req writev2.Request
		if err := req.Unmarshal(m); err != nil {
			return nil, fmt.Errorf("join message %d of %d: %w", i+1, len(messages), err)
		}
		refs := make(references, len(req.Symbols))
		for ref, s := range req.Symbols {
			refs[ref] = symbols.Symbolize(s)
		}
		for j := range req.Timeseries {
			if err := refs.translate(&req.Timeseries[j]); err != nil {
				return nil, fmt.Errorf("join message %d of %d: %w", i+1, len(messages), err)
			}
		}
		all.Timeseries = append(all.Timeseries, req.Timeseries...)
	}
	all.Symbols = symbols.Symbols()
	b, err := all.Marshal()
	if err != nil {
		return nil, fmt.Errorf("join %d messages: %w", len(messages), err)
	}
	return b, nil
}

// references are the symbols of one message in the table of another one.
type references []uint32

// translate makes the references of a series those of the other table.
func (r references) translate(ts *writev2.TimeSeries) error {
	lists := [][]uint32{ts.LabelsRefs}
	for _, e := range ts.Exemplars {
		lists = append(lists, e.LabelsRefs)
	}
	for _, refs := range lists {
		for i := range refs {
			if err := r.one(&refs[i]); err != nil {
				return err
			}
		}
	}
	if err := r.one(&ts.Metadata.HelpRef); err != nil {
		return err
	}
	return r.one(&ts.Metadata.UnitRef)
}

func (r references) one(ref *uint32) error {
	if int(*ref) >= len(r) {
		return fmt.Errorf("there is no symbol %d of %d", *ref, len(r))
	}
	*ref = r[*ref]
	return nil
}
