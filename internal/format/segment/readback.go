package segment

import "github.com/prometheus/prometheus/model/exemplar"

// ReadBack returns a batch that holds what Decode reads from the segment of b, with b's own View and
// references: the codecs of histograms, exemplars and metadata change details, such as text that is
// not UTF-8. It shares View, Rows, End, TS, V and ST with b, and nothing else.
func (b *Batch) ReadBack() (*Batch, error) {
	out := &Batch{View: b.View, Rows: b.Rows, End: b.End, TS: b.TS, V: b.V, ST: b.ST}
	for _, r := range b.Hists {
		rh := RowHists{Row: r.Row, Samples: make([]Hist, len(r.Samples))}
		for i, h := range r.Samples {
			blob, err := EncodeHist(h)
			if err == nil {
				rh.Samples[i], err = DecodeHist(blob)
			}
			if err != nil {
				return nil, err
			}
		}
		out.Hists = append(out.Hists, rh)
	}
	for _, r := range b.Exemplars {
		re := RowExemplars{Row: r.Row, Exemplars: make([]exemplar.Exemplar, len(r.Exemplars))}
		for i, e := range r.Exemplars {
			text, err := EncodeExemplarLabels(e)
			if err != nil {
				return nil, err
			}
			l, err := DecodeExemplarLabels(text)
			if err != nil {
				return nil, err
			}
			re.Exemplars[i] = exemplar.Exemplar{Labels: l, Value: e.Value, Ts: e.Ts, HasTs: true}
		}
		out.Exemplars = append(out.Exemplars, re)
	}
	var err error
	out.Metadata, err = readBackMetadata(b.Metadata)
	return out, err
}

// readBackMetadata returns metadata as decodeMetadata reads what keyValues writes.
func readBackMetadata(ms []Metadata) ([]Metadata, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	kv, err := (&Info{Metadata: ms}).keyValues()
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string, len(kv))
	for _, e := range kv {
		texts[e.Key] = e.Value
	}
	return decodeMetadata(texts)
}
