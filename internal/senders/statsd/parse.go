package statsd

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// event is one value of a line. Its texts are parts of the line.
type event struct {
	kind     kind
	name     []byte // with tags in the styles of InfluxDB, Librato and SignalFx
	tags     []byte // in the style of DogStatsD
	value    float64
	member   []byte // of a set
	relative bool   // of a gauge
	times    int    // that a timer was observed
	ignored  error  // why a part of the parameters does not count; nil: all do
}

// maxTimes is how many observations an event of a timer may stand for: the lowest sample rate is
// the inverse.
const maxTimes = 1000

// parse calls use with the events of a line, which is neither empty nor ends with white space.
// Events that cannot be read are passed to drop.
func parse(line []byte, use func(*event), drop func(error)) {
	if bytes.HasPrefix(line, []byte("_e{")) || bytes.HasPrefix(line, []byte("_sc|")) {
		drop(refuse(ReasonEvent, "events and service checks are not metrics"))
		return
	}
	name, rest, ok := cutName(line)
	if !ok || len(name) == 0 {
		drop(refuse(ReasonLine, "line %s: want name:value|type", quote(line)))
		return
	}
	// With tags of DogStatsD, colons may be parts of tags, and several values come before one type.
	if bytes.Contains(rest, []byte("|#")) {
		values, parameters, _ := bytes.Cut(rest, []byte("|"))
		for more := true; more; {
			var value []byte
			value, values, more = bytes.Cut(values, []byte(":"))
			one(line, name, value, parameters, use, drop)
		}
		return
	}
	var values [][]byte // without a type so far
	for more := true; more; {
		var sample []byte
		sample, rest, more = bytes.Cut(rest, []byte(":"))
		value, parameters, typed := bytes.Cut(sample, []byte("|"))
		if last := bytes.LastIndexByte(parameters, '|'); more && last >= 0 && isOrigin(parameters[last+1:]) {
			parameters, rest, more = parameters[:last], nil, false
		}
		values = append(values, value)
		if !typed && more {
			continue
		}
		for _, v := range values {
			one(line, name, v, parameters, use, drop)
		}
		values = values[:0]
	}
}

// isOrigin reports whether a parameter says where an event of DogStatsD is from, such as c:ID for a
// container. These have a colon and come last.
func isOrigin(name []byte) bool {
	return remotewrite.View(name) == "c" || remotewrite.View(name) == "e" || remotewrite.View(name) == "card"
}

// cutName returns the part of a line before the colon that ends its name. Tags of SignalFx are in
// brackets, in which a colon ends nothing.
func cutName(line []byte) (name, rest []byte, ok bool) {
	depth := 0
	for i, c := range line {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ':' && depth <= 0:
			return line[:i], line[i+1:], true
		}
	}
	return bytes.Cut(line, []byte(":"))
}

// one reads a value and its parameters: type|@rate|#tags.
func one(line, name, value, parameters []byte, use func(*event), drop func(error)) {
	e := event{name: name, times: 1}
	err := e.read(value, parameters)
	if err != nil {
		drop(refuse(ReasonLine, "line %s: %w", quote(line), err))
		return
	}
	use(&e)
}

func (e *event) read(value, parameters []byte) error {
	typ, rest, more := bytes.Cut(parameters, []byte("|"))
	rate := 1.0
	for more {
		var p []byte
		p, rest, more = bytes.Cut(rest, []byte("|"))
		switch {
		case len(p) > 0 && p[0] == '@':
			if r, err := strconv.ParseFloat(remotewrite.View(p[1:]), 64); err == nil && r > 0 && r <= 1 {
				rate = r
			} else {
				e.ignored = refuse(ReasonRate, "metric %s: the sample rate %s is not a number above 0 and at most 1", quote(e.name), quote(p[1:]))
			}
		case len(p) > 0 && p[0] == '#':
			e.tags = p[1:]
		case bytes.HasPrefix(p, []byte("c:")), bytes.HasPrefix(p, []byte("e:")), bytes.HasPrefix(p, []byte("card:")), len(p) > 1 && p[0] == 'T':
			// The container, the environment, and the time at which the sender read its clock.
		default:
			return errors.New("want name:value|type, with |@rate and |#tags at most")
		}
	}
	scale := 1.0
	switch remotewrite.View(typ) {
	case "c", "m":
		e.kind = counter
	case "g":
		e.kind = gauge
	case "ms":
		e.kind, scale = observer, 0.001
	case "h", "d":
		e.kind = observer
	case "s":
		e.kind, e.member = set, value
		return nil
	default:
		return errors.New("the type is none of c, g, ms, h, d, s and m")
	}
	v, err := strconv.ParseFloat(remotewrite.View(value), 64)
	if err != nil || e.kind != gauge && (math.IsNaN(v) || math.IsInf(v, 0)) {
		return errors.New("the value is not a number")
	}
	e.value = v * scale
	switch e.kind {
	case counter:
		if e.value /= rate; v < 0 {
			return errors.New("a counter cannot go down")
		}
	case gauge:
		e.relative = value[0] == '+' || value[0] == '-'
	case observer:
		if e.times = int(1 / rate); e.times > maxTimes {
			return errors.New("the sample rate of a timer is below 0.001")
		}
	}
	return nil
}

// maxQuoted is how much of a line stands in an error, in bytes.
const maxQuoted = 100

func quote(line []byte) string { return strconv.Quote(string(line[:min(len(line), maxQuoted)])) }

// labelsOf returns the labels of an event, sorted by name, and what is ignored of its tags: those
// that are not a name and a value. Of equal tags the last counts. Names are made valid in the way
// of statsd_exporter: what is not a letter, digit, underscore or colon becomes an underscore.
func labelsOf(e *event) (lset []series.Label, ignored, err error) {
	if !utf8.Valid(e.name) || !utf8.Valid(e.tags) {
		return nil, nil, errors.New("names and tags are not valid UTF-8")
	}
	metric, tags := splitName(string(e.name))
	if metric == "" {
		return nil, nil, errors.New("the metric has no name")
	}
	out := []series.Label{{Name: model.MetricNameLabel, Value: escape(metric)}}
	add := func(text, separator string) {
		for tag := range strings.SplitSeq(text, ",") {
			if tag = strings.TrimPrefix(strings.TrimSpace(tag), "#"); tag == "" { // some senders repeat the #
				continue
			}
			name, value, _ := strings.Cut(tag, separator)
			if name = escape(name); name == "" || value == "" || name == model.MetricNameLabel {
				ignored = refuse(ReasonTag, "metric %s: the tag %s is not a name and a value with %s between them", quote(e.name), quote([]byte(tag)), separator)
				continue
			}
			out = append(out, series.Label{Name: name, Value: value})
		}
	}
	add(tags, "=")
	add(string(e.tags), ":")
	return series.LastOfEach(out), ignored, nil
}

// splitName divides a name from tags: name,tag=v (InfluxDB), name#tag=v (Librato), name[tag=v]rest
// (SignalFx).
func splitName(text string) (name, tags string) {
	if before, rest, ok := strings.Cut(text, "["); ok {
		if inside, after, ok := strings.Cut(rest, "]"); ok {
			return before + after, inside
		}
	}
	if i := strings.IndexAny(text, ",#"); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// escape makes a name valid.
func escape(name string) string {
	if name != "" && '0' <= name[0] && name[0] <= '9' {
		name = "_" + name
	}
	return model.EscapeName(name, model.UnderscoreEscaping)
}
