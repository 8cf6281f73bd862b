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
	"unsafe"

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
	return remotewrite.Collect(g, rules, room, func(c *remotewrite.Collector) error {
		key := []byte{remotewrite.KeysOfGraphite}
		for line := range bytes.Lines(r.Body) {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			if err := add(c, line, r.Time, &key); err != nil {
				return err
			}
		}
		return nil
	})
}

// add adds the sample of a line. An error means that there is no room.
func add(c *remotewrite.Collector, line []byte, now int64, key *[]byte) error {
	path, t, v, err := parse(line, now)
	if err != nil {
		return c.Reject(invalid(line, err), 1)
	}
	c.Float(t, v)
	*key = append((*key)[:1], path...)
	known, err := c.Series(c.Key(*key))
	if known || err != nil {
		return err
	}
	// Of equal tags the last counts, as in Graphite.
	if !utf8.Valid(path) {
		return c.Refuse(invalid(line, errors.New("the metric is not valid UTF-8")))
	}
	metric, tags, tagged := strings.Cut(string(path), ";")
	if metric == "" {
		return c.Refuse(invalid(line, errors.New("the metric has no name")))
	}
	out := []series.Label{{Name: model.MetricNameLabel, Value: metric}}
	for tagged {
		var tag string
		tag, tags, tagged = strings.Cut(tags, ";")
		name, value, ok := strings.Cut(tag, "=")
		if !ok || name == "" || value == "" || name == model.MetricNameLabel {
			return c.Refuse(invalid(line, fmt.Errorf("the tag %s is not a name and a value with = between them", remotewrite.Quote(tag))))
		}
		out = append(out, series.Label{Name: name, Value: value})
	}
	lset := series.LastOfEach(out)
	return c.Learn(lset)
}

func invalid(line []byte, err error) error {
	return &remotewrite.Rejection{Reason: remotewrite.ReasonLine, Err: fmt.Errorf("line %s: %w", remotewrite.Quote(string(line)), err)}
}

// parse reads a line: a path with tags, a value, and mostly a time in seconds.
func parse(line []byte, now int64) (path []byte, t int64, v float64, err error) {
	path, rest := field(line)
	value, rest := field(rest)
	at, rest := field(rest)
	if len(value) == 0 || len(rest) > 0 {
		return nil, 0, 0, errors.New("want a metric, a value and a time in seconds, with spaces between them")
	}
	if v, err = strconv.ParseFloat(text(value), 64); err != nil {
		return nil, 0, 0, fmt.Errorf("the value %s is not a number", remotewrite.Quote(string(value)))
	}
	if len(at) == 0 || string(at) == "-1" {
		return path, now, v, nil
	}
	seconds, err := strconv.ParseFloat(text(at), 64)
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

// text views bytes as a string, which is valid no longer than they are unchanged.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
