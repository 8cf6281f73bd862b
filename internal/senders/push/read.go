package push

import (
	"errors"
	"io"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/promlake/promlake/internal/format/segment"
)

// Series is a series of a group.
type Series struct {
	Labels    labels.Labels
	Histogram bool // its samples are native histograms
}

// sample is a sample of one series.
type sample struct {
	series    Series
	family    string
	v         float64
	h         *histogram.Histogram
	fh        *histogram.FloatHistogram
	exemplars []exemplar.Exemplar
}

// read reads metrics as Prometheus' parser of delimited protobuf does.
func read(encoded []byte) (*Metrics, error) {
	m := &Metrics{}
	p := textparse.NewProtobufParser(encoded, false, false, false, false, labels.NewSymbolTable())
	var family *segment.Metadata
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			m.described = slices.DeleteFunc(m.described, func(d segment.Metadata) bool {
				return d.Metric == "" || d.Type == string(model.MetricTypeUnknown) && d.Help == "" && d.Unit == ""
			})
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		var s sample
		switch entry {
		case textparse.EntryHelp:
			name, text := p.Help()
			m.described = append(m.described, segment.Metadata{Metric: string(name), Help: string(text)})
			family = &m.described[len(m.described)-1]
			continue
		case textparse.EntryType:
			_, kind := p.Type()
			family.Type = string(kind)
			continue
		case textparse.EntryUnit:
			_, unit := p.Unit()
			family.Unit = string(unit)
			continue
		case textparse.EntrySeries:
			_, _, s.v = p.Series()
		case textparse.EntryHistogram:
			_, _, h, fh := p.Histogram() // whose buckets the parser uses again
			if s.series.Histogram = true; h != nil {
				s.h = h.Copy()
			} else {
				s.fh = fh.Copy()
			}
		default:
			continue
		}
		s.family = family.Metric
		p.Labels(&s.series.Labels)
		for e := (exemplar.Exemplar{}); p.Exemplar(&e); e = (exemplar.Exemplar{}) {
			s.exemplars = append(s.exemplars, e)
		}
		m.samples = append(m.samples, s)
	}
}
