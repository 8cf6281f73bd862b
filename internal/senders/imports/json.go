package imports

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	stalemarker "github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/jsontext"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// DecodeJSON turns lines of JSON in VictoriaMetrics' format
// (https://docs.victoriametrics.com/victoriametrics/#json-line-format) into a batch of the
// generation g (see remotewrite.Collect):
//
//	{"metric":{"__name__":"up","job":"a"},"values":[1,0],"timestamps":[1700000000000,1700000015000]}
//
// Timestamps are in milliseconds. Values are numbers, "Infinity", "-Infinity" and "NaN"; null is a
// stale marker. Lines that cannot be read are left out and reported as offences with the reason
// ReasonLine.
func DecodeJSON(body []byte, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	d := jsonDecoder{body: body}
	return remotewrite.Collect(g, rules, room, d.read)
}

type jsonDecoder struct {
	body []byte
	c    *remotewrite.Collector
	key  []byte

	metric []byte // of the line at hand, as it stands in the body
	values []float64
	times  []int64
}

// read adds all lines to the collector.
func (d *jsonDecoder) read(c *remotewrite.Collector) error {
	d.c = c
	d.key = append(d.key[:0], remotewrite.KeysOfJSONLines)
	prefix := len(d.key)
	number := 0
	for rest := d.body; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := d.room(line); err != nil {
			return err
		}
		if err := d.parse(line); err != nil {
			if err := c.Reject(remotewrite.InvalidLine(number, err), 1); err != nil {
				return err
			}
			continue
		}
		for i, t := range d.times {
			c.Float(t, d.values[i])
		}
		d.key = append(d.key[:prefix], d.metric...)
		if err := c.Of(d.key, d.labels, func(err error) error { return remotewrite.InvalidLine(number, err) }); err != nil {
			return err
		}
	}
	return nil
}

// room takes the memory for the numbers of a line, if it is more than that of the lines before.
func (d *jsonDecoder) room(line []byte) error {
	most := bytes.Count(line, []byte(",")) + 1
	if most <= cap(d.values) {
		return nil
	}
	if err := d.c.Take(16 * int64(most-cap(d.values))); err != nil {
		return err
	}
	d.values, d.times = make([]float64, 0, most), make([]int64, 0, most)
	return nil
}

// parse reads a line into metric, values and times.
func (d *jsonDecoder) parse(line []byte) error {
	d.metric, d.values, d.times = nil, d.values[:0], d.times[:0]
	p := jsontext.New(line)
	err := p.Object(func(name string) (err error) {
		switch name {
		case "metric":
			d.metric, err = p.Raw()
		case "values":
			d.values = d.values[:0]
			err = p.Array(func() error {
				v, err := value(p)
				d.values = append(d.values, v)
				return err
			})
		case "timestamps":
			d.times = d.times[:0]
			err = p.Array(func() error {
				t, err := p.Integer("an integer of milliseconds")
				d.times = append(d.times, t)
				return err
			})
		default:
			_, err = p.Raw()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", remotewrite.Quote(name), err)
		}
		return nil
	})
	if err := cmp.Or(err, p.End()); err != nil {
		return err
	}
	switch {
	case d.metric == nil:
		return errors.New(`"metric" is missing`)
	case len(d.values) == 0:
		return errors.New(`"values" is missing or empty`)
	case len(d.values) != len(d.times):
		return fmt.Errorf("%d values, but %d timestamps", len(d.values), len(d.times))
	}
	return nil
}

// usualLabels is the number of labels that are read without growth.
const usualLabels = 16

// labels returns the labels of the line at hand.
func (d *jsonDecoder) labels() ([]series.Label, error) {
	if !utf8.Valid(d.metric) {
		return nil, errors.New(`"metric" is not valid UTF-8`)
	}
	if d.metric[0] != '{' {
		return nil, errors.New(`"metric" is not an object`)
	}
	out := make([]series.Label, 0, usualLabels)
	p := jsontext.New(d.metric)
	err := p.Object(func(name string) error {
		if p.Peek() != '"' {
			return fmt.Errorf("the value of %s is not a string", remotewrite.Quote(name))
		}
		value, err := p.String()
		out = append(out, series.Label{Name: strings.Clone(name), Value: value})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf(`"metric": %w`, err)
	}
	return out, nil
}

var stale = math.Float64frombits(stalemarker.StaleNaN)

const wantValue = `a number, "NaN", "Infinity", "-Infinity" or null`

// value reads a value of a sample.
func value(p *jsontext.Parser) (float64, error) {
	at := *p
	switch p.Peek() {
	case 'n':
		if raw, err := p.Raw(); err == nil && string(bytes.TrimSpace(raw)) == "null" {
			return stale, nil
		}
	case '"':
		s, err := p.String()
		if err != nil {
			return 0, err
		}
		switch s {
		case "NaN", "nan":
			return math.NaN(), nil
		case "Infinity", "infinity", "Inf", "inf", "+Inf":
			return math.Inf(1), nil
		case "-Infinity", "-infinity", "-Inf", "-inf":
			return math.Inf(-1), nil
		}
	default:
		return p.Float(wantValue)
	}
	return 0, at.Unexpected(wantValue)
}
