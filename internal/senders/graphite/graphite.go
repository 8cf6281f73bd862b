// Package graphite reads lines of Graphite's plaintext protocol
// (https://graphite.readthedocs.io/en/stable/feeding-carbon.html#the-plaintext-protocol), with tags
// (https://graphite.readthedocs.io/en/stable/tags.html):
//
//	servers.web01.load;dc=lga 0.7 1700000000
package graphite

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// Request is some lines.
type Request struct {
	Body []byte
	Time int64 // ms: of samples without a time, or with -1
}

// Decode turns lines into a batch of the generation g (see remotewrite.Collect). Lines that cannot
// be read are left out and reported as offences with the reason ReasonLine.
func Decode(r Request, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	return remotewrite.CollectLines(g, rules, room, r.Body, func(c *remotewrite.Collector, line []byte) error {
		invalid := func(err error) error { return remotewrite.InvalidLine(remotewrite.Quote(string(line)), err) }
		path, t, v, err := parse(line, r.Time)
		if err != nil {
			return c.Reject(invalid(err), 1)
		}
		c.Float(t, v)
		return c.Of(append(c.Text(remotewrite.KeysOfGraphite), path...), func() ([]series.Label, error) { return labelsOf(path) }, invalid)
	})
}

// labelsOf returns the labels of a path. Of equal tags the last counts, as in Graphite.
func labelsOf(path []byte) ([]series.Label, error) {
	if !utf8.Valid(path) {
		return nil, errors.New("the metric is not valid UTF-8")
	}
	metric, tags, tagged := strings.Cut(string(path), ";")
	if metric == "" {
		return nil, errors.New("the metric has no name")
	}
	out := []series.Label{{Name: model.MetricNameLabel, Value: metric}}
	for tagged {
		var tag string
		tag, tags, tagged = strings.Cut(tags, ";")
		l, err := remotewrite.Tag(tag)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return series.LastOfEach(out), nil
}

// parse reads a line: a path with tags, a value, and mostly a time in seconds.
func parse(line []byte, now int64) (path []byte, t int64, v float64, err error) {
	path, rest := field(line)
	value, rest := field(rest)
	at, rest := field(rest)
	if len(value) == 0 || len(rest) > 0 {
		return nil, 0, 0, errors.New("want a metric, a value and a time in seconds, with spaces between them")
	}
	if v, err = strconv.ParseFloat(remotewrite.View(value), 64); err != nil {
		return nil, 0, 0, fmt.Errorf("the value %s is not a number", remotewrite.Quote(string(value)))
	}
	if len(at) == 0 || string(at) == "-1" {
		return path, now, v, nil
	}
	seconds, err := strconv.ParseFloat(remotewrite.View(at), 64)
	if err != nil || !(math.Abs(seconds) < 1e15) {
		return nil, 0, 0, fmt.Errorf("the time %s is not a number of seconds", remotewrite.Quote(string(at)))
	}
	return path, int64(math.Round(seconds * 1000)), v, nil
}

// field returns the text up to the next white space, and what comes after that.
func field(b []byte) (first, rest []byte) {
	i := bytes.IndexAny(b, " \t")
	if i < 0 {
		return b, nil
	}
	return b[:i], bytes.TrimLeft(b[i:], " \t")
}

// MaxPickle is the longest message of Graphite's pickle protocol, in bytes, as in carbon.
const MaxPickle = 1 << 20

// maxPickleFactor bounds the lines of a message: they may take this times its bytes. A path that is
// written once in a pickle can stand in many points.
const maxPickleFactor = 16

// pickleLines is how many bytes of lines are passed on at once.
const pickleLines = 64 << 10

// FromPickle reads a message of Graphite's pickle protocol
// (https://graphite.readthedocs.io/en/stable/feeding-carbon.html#the-pickle-protocol), without its
// length:
//
//	[(path, (time, value)), …]
//
// It calls add with lines of the plaintext protocol, which are valid until add returns. Points that
// are no lines are left out: bad is their number, and why the reason of the first. The error is
// ErrPickle; what was added before it counts.
func FromPickle(message []byte, add func(lines []byte)) (bad int, why, err error) {
	all, err := unpickle(message)
	if err != nil {
		return 0, nil, err
	}
	if all.Kind != pickledSequence {
		return 0, nil, fmt.Errorf("%w: it is not a list of points (path, (time, value))", ErrPickle)
	}
	var lines []byte
	left := 4096 + maxPickleFactor*len(message)
	for _, point := range all.Items() {
		begin := len(lines)
		next, err := appendPoint(lines, point)
		if err != nil {
			bad++
			if why == nil {
				why = err
			}
			continue
		}
		lines = next
		if left -= len(lines) - begin; left < 0 {
			return bad, why, fmt.Errorf("%w: its lines take more than %d times its %d bytes: send fewer points of one metric in a message", ErrPickle, maxPickleFactor, len(message))
		}
		if len(lines) >= pickleLines {
			add(lines)
			lines = lines[:0]
		}
	}
	if len(lines) > 0 {
		add(lines)
	}
	return bad, why, nil
}

// appendPoint appends the line of a point.
func appendPoint(dst []byte, point pickled) ([]byte, error) {
	pair := point.Items()
	if len(pair) != 2 || pair[0].Kind != pickledText || len(pair[1].Items()) != 2 {
		return nil, errors.New("a point is not (path, (time, value))")
	}
	path := pair[0].Text
	if len(path) == 0 || bytes.ContainsAny(path, " \t\r\n\v\f\u0085\u00a0") {
		return nil, fmt.Errorf("the path %s is empty or has white space", remotewrite.Quote(string(path)))
	}
	dst = append(dst, path...)
	for _, i := range [...]int{1, 0} { // value, time
		v := pair[1].Items()[i]
		switch v.Kind {
		case pickledNumber:
			dst = strconv.AppendFloat(append(dst, ' '), v.Number, 'g', -1, 64)
		case pickledText:
			f, err := strconv.ParseFloat(string(bytes.TrimSpace(v.Text)), 64)
			if err != nil {
				return nil, fmt.Errorf("path %s: %s is not a number", remotewrite.Quote(string(path)), remotewrite.Quote(string(v.Text)))
			}
			dst = strconv.AppendFloat(append(dst, ' '), f, 'g', -1, 64)
		default:
			return nil, fmt.Errorf("path %s: time or value is not a number", remotewrite.Quote(string(path)))
		}
	}
	return append(dst, '\n'), nil
}
