// Package imports reads what VictoriaMetrics' API for imports takes: CSV, lines of JSON, and
// metrics in Prometheus' text formats.
package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// ErrText marks a body with metrics in a text format that cannot be parsed.
var ErrText = errors.New("invalid metrics")

// Text is one body in the text format 0.0.4 or OpenMetrics
// (https://prometheus.io/docs/instrumenting/exposition_formats/), with the parameters that came
// with it.
type Text struct {
	Body        []byte
	OpenMetrics bool
	Time        int64 // ms, of samples without a timestamp
}

// DecodeText turns a body into a batch of the generation g (see remotewrite.Collect). The parser is
// Prometheus' own. A body that cannot be parsed is refused as a whole with ErrText.
func DecodeText(r Text, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	d := textDecoder{Text: r}
	return remotewrite.Collect(g, rules, room, d.read)
}

type textDecoder struct {
	Text
	c      *remotewrite.Collector
	labels []series.Label
	family segment.Metadata // at hand

	key    []byte
	prefix int // bytes of key that all series of the family share; 0: to be computed

	kind    model.MetricType // of the last TYPE line that was read without the parser; "": none
	unknown int              // series that were read one by one
}

// read adds all samples, exemplars and metadata to the collector.
func (d *textDecoder) read(c *remotewrite.Collector) error {
	d.c = c
	if !d.OpenMetrics {
		rest := d.Body
		if bytes.IndexByte(rest, 0) >= 0 {
			return d.parseRest(rest)
		}
		for len(rest) > 0 {
			n, err := d.line(rest)
			if err != nil {
				return err
			}
			if n == 0 {
				return d.parseRest(rest)
			}
			rest = rest[n:]
		}
		return d.described("")
	}
	p, err := textparse.New(d.Body, "application/openmetrics-text", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrText, err)
	}
	return d.parse(p)
}

// parse adds what a parser reads.
func (d *textDecoder) parse(p textparse.Parser) error {
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return d.described("")
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrText, err)
		}
		switch entry {
		case textparse.EntrySeries:
			err = d.sample(p)
		case textparse.EntryType:
			name, kind := p.Type()
			err = d.typed(string(name), kind)
		case textparse.EntryHelp:
			name, help := p.Help()
			if err = d.described(string(name)); err == nil {
				d.family.Help = string(help)
			}
		case textparse.EntryUnit:
			name, unit := p.Unit()
			if err = d.described(string(name)); err == nil {
				d.family.Unit = string(unit)
			}
		}
		if err != nil {
			return err
		}
	}
}

// typed notes the type of a family.
func (d *textDecoder) typed(name string, kind model.MetricType) error {
	if err := d.described(name); err != nil {
		return err
	}
	d.family.Type, d.prefix = string(kind), 0
	return nil
}

// described adds the metadata of the family at hand when another one begins.
func (d *textDecoder) described(next string) error {
	last := d.family
	if next == last.Metric {
		return nil
	}
	d.prefix = 0
	d.family = segment.Metadata{Metric: next, Type: string(model.MetricTypeUnknown)}
	if last.Type == string(model.MetricTypeUnknown) && last.Help == "" && last.Unit == "" || last.Metric == "" {
		return nil
	}
	return d.c.Metadata(last)
}

// sample adds a sample with its exemplars.
func (d *textDecoder) sample(p textparse.Parser) error {
	text, at, v := p.Series()
	t := d.Time
	if at != nil {
		t = *at
	}
	d.c.Float(t, v)
	for e := (exemplar.Exemplar{}); p.Exemplar(&e); e = (exemplar.Exemplar{}) {
		if !e.HasTs {
			e.Ts = t
		}
		d.c.Exemplar(e)
	}
	return d.c.Of(d.keyOf(text), func() ([]series.Label, error) {
		var lset labels.Labels
		p.Labels(&lset)
		d.labels = d.labels[:0]
		lset.Range(func(l labels.Label) { d.labels = append(d.labels, series.Label{Name: l.Name, Value: l.Value}) })
		return d.labels, nil
	}, nil)
}

// keyOf returns the text of the key of a series of the family at hand. The parser writes the labels
// le and quantile by the type of the family, so that is a part of the key.
func (d *textDecoder) keyOf(text []byte) []byte {
	if d.prefix == 0 {
		d.key = append(d.key[:0], remotewrite.KeysOfText)
		d.key = remotewrite.AppendKey(remotewrite.AppendKey(d.key, d.family.Metric), d.family.Type)
		d.prefix = len(d.key)
	}
	d.key = append(d.key[:d.prefix], text...)
	return d.key
}
