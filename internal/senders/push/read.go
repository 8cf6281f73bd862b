package push

import (
	"errors"
	"io"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/promlake/promlake/internal/format/segment"
)

// family is a metric family with its series.
type family struct {
	name   string
	series []Series
}

// Series is a series of a group.
type Series struct {
	Labels    labels.Labels
	Histogram bool // its samples are native histograms
}

// sample is what a parser reads of one series.
type sample struct {
	series    Series
	family    string
	v         float64
	h         *histogram.Histogram
	fh        *histogram.FloatHistogram
	exemplars []exemplar.Exemplar
}

// each calls use for each series of encoded metrics, and describe for the metadata of each family.
// The sample is valid until use returns.
func each(encoded []byte, use func(*sample) error, describe func(segment.Metadata) error) error {
	p := textparse.NewProtobufParser(encoded, false, false, false, false, labels.NewSymbolTable())
	var meta segment.Metadata
	described := func() error {
		if meta.Metric == "" || meta.Type == string(model.MetricTypeUnknown) && meta.Help == "" && meta.Unit == "" {
			return nil
		}
		return describe(meta)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return described()
		}
		if err != nil {
			return err
		}
		s := sample{family: meta.Metric}
		switch entry {
		case textparse.EntryHelp:
			if err := described(); err != nil {
				return err
			}
			name, text := p.Help()
			meta = segment.Metadata{Metric: string(name), Help: string(text)}
			continue
		case textparse.EntryType:
			_, kind := p.Type()
			meta.Type = string(kind)
			continue
		case textparse.EntryUnit:
			_, unit := p.Unit()
			meta.Unit = string(unit)
			continue
		case textparse.EntrySeries:
			_, _, s.v = p.Series()
		case textparse.EntryHistogram:
			_, _, s.h, s.fh = p.Histogram()
			s.series.Histogram = true
		default:
			continue
		}
		p.Labels(&s.series.Labels)
		for e := (exemplar.Exemplar{}); p.Exemplar(&e); e = (exemplar.Exemplar{}) {
			s.exemplars = append(s.exemplars, e)
		}
		if err := use(&s); err != nil {
			return err
		}
	}
}

// familiesOf returns the families of encoded metrics.
func familiesOf(encoded []byte) (out []family, err error) {
	err = each(encoded, func(s *sample) error {
		if len(out) == 0 || out[len(out)-1].name != s.family {
			out = append(out, family{name: s.family})
		}
		last := &out[len(out)-1]
		last.series = append(last.series, s.series)
		return nil
	}, func(segment.Metadata) error { return nil })
	return out, err
}

func count(all []family) (n int) {
	for _, f := range all {
		n += len(f.series)
	}
	return n
}
