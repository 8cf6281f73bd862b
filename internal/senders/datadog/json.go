package datadog

import (
	"fmt"

	"github.com/promlake/promlake/internal/format/jsontext"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// member reads a member of a series.
func (d *decoder) member(p *jsontext.Parser, name string) (err error) {
	switch {
	case name == "metric":
		d.metric, err = p.String()
	case name == "points" && d.Form == V1:
		err = p.Array(func() error { return d.pairV1(p) })
	case name == "points":
		err = p.Array(func() error { return d.pointV2(p) })
	case p.Peek() == 'n': // null stands for what is not given
		_, err = p.Raw()
	case name == "type" && d.Form == V1 && p.Peek() != '"':
		err = p.Unexpected("a type, which is a string,")
	case name == "type" && d.Form == V1:
		var text []byte
		text, err = p.Raw()
		d.kind = kinds[string(text)]
	case name == "type":
		var number int64
		number, err = p.Integer("a type, which is a number,")
		d.setKind(number)
	case name == "interval":
		var seconds float64
		if seconds, err = p.Float("a number of seconds"); err == nil {
			err = d.setInterval(seconds)
		}
	case name == "tags":
		err = p.Array(func() error {
			t, err := p.String()
			d.tags = append(d.tags, t)
			return err
		})
	case (name == "host" || name == "device") && d.Form == V1:
		var value string
		if value, err = p.String(); value != "" {
			d.labels = append(d.labels, series.Label{Name: name, Value: value})
		}
	case name == "resources" && d.Form == V2:
		err = p.Array(func() error { return d.resource(p) })
	default:
		_, err = p.Raw()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", remotewrite.Quote(name), err)
	}
	return nil
}

// pairV1 reads a point of version 1: [seconds, value].
func (d *decoder) pairV1(p *jsontext.Parser) error {
	var pair [2]float64
	n := 0
	err := p.Array(func() (err error) {
		if n == len(pair) {
			return p.Unexpected("the end of a point, which has a timestamp and a value,")
		}
		pair[n], err = p.Float("a number")
		n++
		return err
	})
	if err == nil && n < len(pair) {
		err = p.Unexpected("a timestamp and a value before it")
	}
	if err != nil {
		return err
	}
	return d.point(pair[0], pair[1])
}

// pointV2 reads a point of version 2: {"timestamp": seconds, "value": v}.
func (d *decoder) pointV2(p *jsontext.Parser) error {
	var seconds, v float64
	timed, given := false, false
	err := p.Object(func(name string) (err error) {
		switch name {
		case "timestamp":
			seconds, err = p.Float("a number of seconds")
			timed = true
		case "value":
			v, err = p.Float("a number")
			given = true
		default:
			_, err = p.Raw()
		}
		return err
	})
	if err == nil && !(timed && given) {
		err = p.Unexpected("timestamp and value before it")
	}
	if err != nil {
		return err
	}
	return d.point(seconds, v)
}

// resource reads a resource of version 2: {"type": "host", "name": "web01"}.
func (d *decoder) resource(p *jsontext.Parser) error {
	var l series.Label
	err := p.Object(func(name string) (err error) {
		switch name {
		case "type":
			l.Name, err = p.String()
		case "name":
			l.Value, err = p.String()
		default:
			_, err = p.Raw()
		}
		return err
	})
	d.labels = append(d.labels, l)
	return err
}
