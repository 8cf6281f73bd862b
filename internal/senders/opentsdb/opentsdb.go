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
	"strings"
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

// DecodeLines turns lines of the telnet protocol
// (http://opentsdb.net/docs/build/html/api_telnet/put.html) into a batch of the generation g (see
// remotewrite.Collect):
//
//	put sys.cpu.nice 1700000000 18 host=web01 dc=lga
//
// Lines that cannot be read, other commands among them, are left out and reported as offences with
// the reason ReasonLine.
func DecodeLines(body []byte, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	return remotewrite.CollectLines(g, rules, room, body, addLine)
}

// addLine adds the sample of a line. An error means that there is no room.
func addLine(c *remotewrite.Collector, line []byte) error {
	invalid := func(err error) error { return remotewrite.InvalidLine(remotewrite.Quote(string(line)), err) }
	fields := strings.Fields(string(line))
	if len(fields) < 4 || fields[0] != "put" {
		return c.Reject(invalid(errors.New("want put, a metric, a timestamp, a value and tags, with spaces between them")), 1)
	}
	t, err := lineTime(fields[2])
	if err != nil {
		return c.Reject(invalid(err), 1)
	}
	v, err := strconv.ParseFloat(fields[3], 64)
	if err != nil {
		return c.Reject(invalid(fmt.Errorf("the value %s is not a number", remotewrite.Quote(fields[3]))), 1)
	}
	c.Float(t, v)
	key := append(c.Text(remotewrite.KeysOfTelnet), fields[1]...)
	for _, tag := range fields[4:] {
		key = append(append(key, ' '), tag...)
	}
	return c.Of(key, func() ([]series.Label, error) { return lineLabels(fields[1], fields[4:]) }, invalid)
}

// lineTime reads a time in seconds, also with a fraction, or in milliseconds.
func lineTime(text string) (int64, error) {
	if t, err := strconv.ParseInt(text, 10, 64); err == nil {
		return millis(t), nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(math.Abs(seconds) <= math.MaxUint32) {
		return 0, fmt.Errorf("%s is not a timestamp in seconds or milliseconds", remotewrite.Quote(text))
	}
	return int64(math.Round(seconds * 1000)), nil
}

// lineLabels returns the labels of a metric with tags.
func lineLabels(metric string, tags []string) ([]series.Label, error) {
	out := []series.Label{{Name: model.MetricNameLabel, Value: metric}}
	for _, tag := range tags {
		l, err := remotewrite.Tag(tag)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	for _, l := range out {
		if !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return nil, errors.New("metric or tags are not valid UTF-8")
		}
	}
	return out, nil
}
