package imports

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	promvalue "github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// Prometheus' parser takes most of the time of a body in the text format. Here, lines of known
// series and plain comments are read without it. It decides all else: the labels of a new series,
// and everything that is unusual or wrong.

// maxSingle is how many new series of a body are given to the parser one by one. After them, it
// reads the rest of the body.
const maxSingle = 64

// line reads the line at the beginning of b and returns its bytes, or 0 if the parser is to read
// it.
func (d *textDecoder) line(b []byte) (n int, err error) {
	switch c := b[0]; {
	case c == '\n':
		return 1, nil
	case c == '#':
		return d.comment(b)
	case nameBegins(c):
		return d.series(b)
	}
	return 0, nil
}

// parseRest gives the rest of a body to the parser. It must write labels by the same type as if it
// had read what stands before.
func (d *textDecoder) parseRest(rest []byte) error {
	p := d.parser(rest)
	return d.parse(p)
}

// parser returns Prometheus' parser of a text that follows the last TYPE line.
func (d *textDecoder) parser(text []byte) textparse.Parser {
	if d.kind == "" {
		return textparse.NewPromParser(text[:len(text):len(text)], labels.NewSymbolTable(), false)
	}
	kind := string(d.kind)
	if d.kind == model.MetricTypeUnknown {
		kind = "untyped"
	}
	prefix := "# TYPE x " + kind + "\n"
	all := append(append(make([]byte, 0, len(prefix)+len(text)+1), prefix...), text...)
	p := textparse.NewPromParser(all, labels.NewSymbolTable(), false)
	_, _ = p.Next() // the prefix
	return p
}

// comment reads a HELP or TYPE line in its usual form, and passes over other comments.
func (d *textDecoder) comment(b []byte) (n int, err error) {
	line, _, ended := bytes.Cut(b, []byte("\n"))
	if n = len(line); ended {
		n++
	}
	words := bytes.TrimLeft(line[1:], " \t")
	isHelp, isType := bytes.HasPrefix(words, []byte("HELP")), bytes.HasPrefix(words, []byte("TYPE"))
	if !isHelp && !isType {
		return n, nil
	}
	if !bytes.HasPrefix(line, []byte("# HELP ")) && !bytes.HasPrefix(line, []byte("# TYPE ")) {
		return 0, nil
	}
	rest := line[len("# HELP "):]
	end := nameLen(rest)
	if end == 0 || end == len(rest) || rest[end] != ' ' {
		return 0, nil
	}
	name, text := rest[:end], rest[end+1:]
	if isType {
		kind := model.MetricType(text)
		switch kind {
		case model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeSummary:
		case "untyped":
			kind = model.MetricTypeUnknown
		default:
			return 0, nil
		}
		d.kind = kind
		return n, d.typed(string(name), kind)
	}
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) || len(bytes.TrimLeft(text, " \t")) == 0 {
		return 0, nil
	}
	if err := d.described(string(name)); err != nil {
		return 0, err
	}
	d.family.Help = string(text)
	return n, nil
}

// series reads a line with a sample.
func (d *textDecoder) series(b []byte) (n int, err error) {
	text, v, t, timed, n := sampleOf(b)
	if n == 0 {
		return 0, nil
	}
	k := d.c.Key(d.keyOf(text))
	if !d.c.Knows(k) {
		if d.unknown++; d.unknown > maxSingle {
			return 0, nil
		}
		p := d.parser(b[:n])
		if entry, err := p.Next(); err != nil || entry != textparse.EntrySeries {
			return 0, nil // the parser reports it when it reads the rest
		}
		return n, d.sample(p)
	}
	if !timed {
		t = d.Time
	}
	d.c.Float(t, v)
	_, err = d.c.Series(k)
	return n, err
}

// sampleOf divides a line into a series, a value and a time (ms), and returns its bytes: 0 if it
// has not the usual form.
func sampleOf(b []byte) (series []byte, v float64, t int64, timed bool, n int) {
	at := nameLen(b)
	if at < len(b) && b[at] == '{' {
		quoted := false
		for at++; at < len(b) && (quoted || b[at] != '}'); at++ {
			switch b[at] {
			case '\n':
				return nil, 0, 0, false, 0
			case '\\':
				if quoted {
					at++
				}
			case '"':
				quoted = !quoted
			}
		}
		if at++; at > len(b) {
			return nil, 0, 0, false, 0
		}
	}
	series = b[:at]
	at += blanks(b[at:])
	from := at
	for at < len(b) && b[at] != ' ' && b[at] != '\t' && b[at] != '\n' && b[at] != '{' {
		at++
	}
	word := remotewrite.View(b[from:at])
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || strings.ContainsAny(word, "pP_") {
		return nil, 0, 0, false, 0
	}
	if math.IsNaN(v) {
		v = math.Float64frombits(promvalue.NormalNaN)
	}
	at += blanks(b[at:])
	if from = at; at < len(b) && '0' <= b[at] && b[at] <= '9' {
		for at < len(b) && '0' <= b[at] && b[at] <= '9' {
			at++
		}
		if t, err = strconv.ParseInt(remotewrite.View(b[from:at]), 10, 64); err != nil {
			return nil, 0, 0, false, 0
		}
		timed = true
		at += blanks(b[at:])
	}
	switch {
	case at == len(b):
		return series, v, t, timed, at
	case b[at] == '\n':
		return series, v, t, timed, at + 1
	}
	return nil, 0, 0, false, 0
}

// blanks is the length of the blanks at the beginning of b.
func blanks(b []byte) int {
	n := 0
	for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
		n++
	}
	return n
}

func nameBegins(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == ':'
}

// nameLen is the length of the metric name at the beginning of b.
func nameLen(b []byte) int {
	if len(b) == 0 || !nameBegins(b[0]) {
		return 0
	}
	n := 1
	for n < len(b) && (nameBegins(b[n]) || '0' <= b[n] && b[n] <= '9') {
		n++
	}
	return n
}
