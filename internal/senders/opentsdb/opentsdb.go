// Package opentsdb reads data points as OpenTSDB's HTTP API and its telnet protocol take them
// (http://opentsdb.net/docs/build/html/api_http/put.html):
//
//	[{"metric":"sys.cpu.nice","timestamp":1700000000,"value":18,"tags":{"host":"web01","dc":"lga"}}]
package opentsdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/jsontext"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// ErrInvalid marks a body that is neither a data point nor a list of them.
var ErrInvalid = errors.New("invalid data points")

// Decode turns a body into a batch of the generation g (see remotewrite.Collect), and returns the
// number of its data points. Data points that break a rule are left out and reported as offences.
func Decode(body []byte, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (b *remotewrite.Batch, points int, err error) {
	d := decoder{body: body}
	b, err = remotewrite.Collect(g, rules, room, d.read)
	return b, d.points, err
}

type decoder struct {
	body   []byte
	c      *remotewrite.Collector
	points int
	key    []byte
	prefix int // bytes of key that all series of a request share

	metric, tags []byte // of the data point at hand, as they stand in the body
	time         int64  // ms
	value        float64
	timed, given bool
}

// read adds all data points to the collector.
func (d *decoder) read(c *remotewrite.Collector) error {
	d.c = c
	d.key = append(d.key[:0], remotewrite.KeysOfOpenTSDB)
	d.prefix = len(d.key)
	p := jsontext.New(d.body)
	var full error // there is no room
	one := func() error {
		if err := d.parse(p); err != nil {
			return err
		}
		full = d.add()
		return full
	}
	err := each(p, one)
	if full != nil {
		return full
	}
	if err == nil {
		err = p.End()
	}
	if err != nil {
		return fmt.Errorf("%w: data point %d: %w", ErrInvalid, d.points+1, err)
	}
	return nil
}

// each calls one at each data point of a body, which is a list of them, or one.
func each(p *jsontext.Parser, one func() error) error {
	if p.Peek() == '[' {
		return p.Array(one)
	}
	return one()
}

// Each calls use with the number and the text of each data point of a body, as far as the body can
// be read. The text is a part of the body.
func Each(body []byte, use func(n int, raw []byte)) {
	p, n := jsontext.New(body), 0
	_ = each(p, func() error { // what cannot be read has no number
		raw, err := p.Raw()
		if n++; err == nil {
			use(n, raw)
		}
		return err
	})
}

// parse reads a data point.
func (d *decoder) parse(p *jsontext.Parser) error {
	d.metric, d.tags, d.timed, d.given = nil, nil, false, false
	return p.Object(func(name string) (err error) {
		switch name {
		case "metric":
			d.metric, err = p.Raw()
		case "tags":
			d.tags, err = p.Raw()
		case "timestamp":
			d.time, err = timestamp(p)
			d.timed = true
		case "value":
			d.value, err = value(p)
			d.given = true
		default:
			_, err = p.Raw()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", remotewrite.Quote(name), err)
		}
		return nil
	})
}

// timestamp reads a time in seconds or milliseconds, also as a string. As in OpenTSDB, one that
// needs more than 32 bits is in milliseconds.
func timestamp(p *jsontext.Parser) (t int64, err error) {
	const want = "a timestamp in seconds or milliseconds"
	if p.Peek() == '"' {
		text, err := p.String()
		if err != nil {
			return 0, err
		}
		if t, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, fmt.Errorf("%s is not %s", remotewrite.Quote(text), want)
		}
	} else if t, err = p.Integer(want); err != nil {
		return 0, err
	}
	return millis(t), nil
}

// millis returns a time in milliseconds that is in these, or in seconds if 32 bits are enough.
func millis(t int64) int64 {
	if -math.MaxUint32 <= t && t <= math.MaxUint32 {
		return t * 1000
	}
	return t
}

// value reads a number, also as a string.
func value(p *jsontext.Parser) (float64, error) {
	const want = "a number"
	if p.Peek() != '"' {
		return p.Float(want)
	}
	text, err := p.String()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not %s", remotewrite.Quote(text), want)
	}
	return v, nil
}

// add adds the data point at hand. An error means that there is no room.
func (d *decoder) add() error {
	d.points++
	d.c.Place(d.points)
	var missing string
	switch {
	case d.metric == nil:
		missing = "metric"
	case !d.timed:
		missing = "timestamp"
	case !d.given:
		missing = "value"
	}
	if missing != "" {
		return d.c.Reject(d.rejection(fmt.Errorf("%q is missing", missing)), 1)
	}
	d.c.Float(d.time, d.value)
	d.key = append(remotewrite.AppendKey(d.key[:d.prefix], d.metric), d.tags...)
	return d.c.Of(d.key, d.labels, d.rejection)
}

func (d *decoder) rejection(err error) error {
	return &remotewrite.Rejection{Reason: remotewrite.ReasonPoint, Err: fmt.Errorf("data point %d: %w", d.points, err)}
}

// labels returns the labels of the data point at hand.
func (d *decoder) labels() ([]series.Label, error) {
	if !utf8.Valid(d.metric) || !utf8.Valid(d.tags) {
		return nil, errors.New("metric or tags are not valid UTF-8")
	}
	var metric string
	if err := json.Unmarshal(d.metric, &metric); err != nil {
		return nil, errors.New("the metric is not a string")
	}
	tags, err := tagsOf(d.tags)
	if err != nil {
		return nil, err
	}
	out := append(tags, series.Label{Name: model.MetricNameLabel, Value: metric})
	return out, nil
}

// tagsOf reads an object whose values are strings or numbers.
func tagsOf(raw []byte) (out []series.Label, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	if !json.Valid(raw) || bytes.TrimSpace(raw)[0] != '{' {
		return nil, errors.New("the tags are not an object")
	}
	p := jsontext.New(raw)
	err = p.Object(func(name string) error {
		if p.Peek() == '"' {
			text, err := p.String()
			out = append(out, series.Label{Name: name, Value: text})
			return err
		}
		number, err := p.Raw()
		if err != nil {
			return err
		}
		number = bytes.TrimSpace(number)
		if _, err := strconv.ParseFloat(string(number), 64); err != nil {
			return fmt.Errorf("the value of tag %s is neither a string nor a number", remotewrite.Quote(name))
		}
		out = append(out, series.Label{Name: name, Value: string(number)})
		return nil
	})
	return out, err
}
