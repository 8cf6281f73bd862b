package push

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Body is the body of a push with its content type.
type Body struct {
	Text        []byte
	ContentType string // that of delimited protobuf; any other means the text format
}

// Metrics are the checked metrics of a push, with the labels of the group.
type Metrics struct {
	samples   []sample           // family by family
	described []segment.Metadata // of the families
}

// The memory (bytes) that parsing takes: for each line of text or byte of protobuf, and for each
// byte of text.
const (
	costLine     = 768
	costText     = 8
	costProtobuf = 48
)

// Parse reads and checks the metrics of a push to a group, as the Pushgateway does. Its errors are
// ErrInvalid, *TooLarge, or those of the room, of which it takes the memory for parsing.
func Parse(b Body, g Group, set Settings, room *remotewrite.Room) (*Metrics, error) {
	if n := int64(len(b.Text)); n > set.MaxBytes {
		return nil, &TooLarge{LimitBytes, set.MaxBytes, n}
	}
	kind, params, err := mime.ParseMediaType(b.ContentType)
	binary := err == nil && kind == expfmt.ProtoType && params["encoding"] == "delimited" && params["proto"] == expfmt.ProtoProtocol
	cost := int64(len(b.Text)) * costProtobuf
	if !binary {
		cost = int64(len(b.Text))*costText + int64(bytes.Count(b.Text, []byte{'\n'})+1)*costLine
	}
	room.Take(cost)
	if err := room.Reserve(0); err != nil {
		return nil, err
	}
	parse := parseText
	if binary {
		parse = parseProtobuf
	}
	all, err := parse(b.Text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	all = slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return f.GetName() == pushTime || f.GetName() == failureTime })
	n := 0
	for _, f := range all {
		for _, m := range f.Metric {
			if m.TimestampMs != nil {
				return nil, fmt.Errorf("%w: pushed metrics must not have timestamps, but a metric of %s has one", ErrInvalid, remotewrite.Quote(f.GetName()))
			}
			m.Label = grouped(m.Label, g)
		}
		n += len(f.Metric)
	}
	if n > set.MaxSeries {
		return nil, &TooLarge{LimitSeries, int64(set.MaxSeries), int64(n)}
	}
	// The registry checks that families have one type and help text, and no metric twice.
	gathered, err := prometheus.Gatherers{prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return all, nil })}.Gather()
	if err != nil {
		return nil, fmt.Errorf("%w or inconsistent: %w", ErrInvalid, err)
	}
	var encoded bytes.Buffer
	for _, f := range gathered {
		if _, err := protodelim.MarshalTo(&encoded, f); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	m, err := read(encoded.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if n := len(m.samples); n > set.MaxSeries {
		return nil, &TooLarge{LimitSeries, int64(set.MaxSeries), int64(n)}
	}
	return m, nil
}

func parseText(b []byte) (_ []*dto.MetricFamily, err error) {
	defer func() {
		if recover() != nil { // the parser has no metric yet at {}, after a comment
			err = errors.New("labels without a metric's name")
		}
	}()
	p := expfmt.NewTextParser(model.UTF8Validation)
	byName, err := p.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) }), nil
}

func parseProtobuf(b []byte) (all []*dto.MetricFamily, err error) {
	d := expfmt.NewDecoder(bytes.NewReader(b), expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		f := &dto.MetricFamily{}
		if err = d.Decode(f); errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
}

// grouped returns the labels of a metric with those of the group, which replace labels of the same
// name, sorted by name.
func grouped(labels []*dto.LabelPair, g Group) []*dto.LabelPair {
	labels = slices.DeleteFunc(labels, func(l *dto.LabelPair) bool {
		return l.GetValue() == "" || slices.ContainsFunc(g, func(x series.Label) bool { return x.Name == l.GetName() })
	})
	for _, l := range g {
		if l.Value != "" {
			labels = append(labels, &dto.LabelPair{Name: proto.String(l.Name), Value: proto.String(l.Value)})
		}
	}
	slices.SortStableFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return labels
}

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
