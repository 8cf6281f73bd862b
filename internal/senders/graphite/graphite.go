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
