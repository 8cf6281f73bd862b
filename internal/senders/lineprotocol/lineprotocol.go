// Package lineprotocol reads the InfluxDB line protocol
// (https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/):
//
//	measurement[,tag=value…] field=value[,field=value…] [timestamp]
//
// It knows bytes and values, not series: the caller decides what a field becomes.
package lineprotocol

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// Field is a field of a line.
type Field struct {
	Name   []byte  // as it stands in the line, with its escapes: see Unescape
	Value  float64 // integers beyond 2^53 are rounded; a boolean is 0 or 1
	String bool    // the value is a string, which is not kept
}

// Line is one point. Its slices are valid until the next call of Next.
type Line struct {
	Series  []byte // measurement and tags as they stand in the line: see Split
	Fields  []Field
	Number  int   // of the line in the body, from 1
	Time    int64 // in the sender's unit
	HasTime bool
}

// The reasons why a line cannot be read.
var (
	errMeasurement = errors.New("missing measurement")
	errTag         = errors.New("a tag must have the form key=value, and neither may be empty")
	errNoFields    = errors.New("missing fields")
	errField       = errors.New("a field must have the form key=value, and neither may be empty")
	errString      = errors.New("a string value has no closing quote")
	errAfter       = errors.New("unexpected text after the timestamp")
	errTime        = errors.New("the timestamp is not a 64-bit integer")
	errUTF8        = errors.New("the line is not valid UTF-8")
)

// Parser reads the lines of a body one after another.
type Parser struct {
	rest   []byte
	begin  []byte // of the line that was read last, and what follows it
	number int    // of that line
	line   Line
}

// NewParser returns a parser of a body, which must not change meanwhile.
func NewParser(body []byte) *Parser { return &Parser{rest: body} }

// Next returns the next line, an error for one that cannot be read (lines around it can), or nil
// and nil at the end. It skips empty lines and comments.
func (p *Parser) Next() (*Line, error) {
	for len(p.rest) > 0 {
		p.number++
		p.skip()
		switch {
		case len(p.rest) == 0:
			return nil, nil
		case p.rest[0] == '\n':
			p.rest = p.rest[1:]
		case p.rest[0] == '#':
			p.toNextLine()
		default:
			p.line.Number, p.begin = p.number, p.rest
			if err := p.read(); err != nil {
				p.toNextLine()
				return nil, fmt.Errorf("line %d: %w", p.line.Number, err)
			}
			return &p.line, nil
		}
	}
	return nil, nil
}

// Number is the number of the line that Next has read last, from 1 on.
func (p *Parser) Number() int { return p.number }

// Text is the line that Next has read last, also one that cannot be read. It is a part of the body.
func (p *Parser) Text() []byte {
	return bytes.TrimRight(p.begin[:len(p.begin)-len(p.rest)], "\r\n")
}

// skip skips blanks, and the carriage return before a newline.
func (p *Parser) skip() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\t' || p.rest[0] == '\r' || p.rest[0] == 0) {
		p.rest = p.rest[1:]
	}
}

func (p *Parser) toNextLine() {
	if i := bytes.IndexByte(p.rest, '\n'); i >= 0 {
		p.rest = p.rest[i+1:]
	} else {
		p.rest = nil
	}
}

// read reads a line up to and with its newline. After an error, p.rest is within the line.
func (p *Parser) read() error {
	// Read the measurement and the tags. Split checks the tags, once for each new text.
	n := end(p.rest, endsSeries, inMeasurement)
	if n == 0 || p.rest[0] == ',' {
		return errMeasurement
	}
	if n == len(p.rest) {
		return errNoFields
	}
	p.line.Series, p.rest = p.rest[:n:n], p.rest[n:]
	p.line.Fields = p.line.Fields[:0]
	if p.rest[0] != ' ' {
		return errNoFields
	}
	p.skip()
	for {
		if err := p.field(); err != nil {
			return err
		}
		if len(p.rest) == 0 || p.rest[0] != ',' {
			break
		}
		p.rest = p.rest[1:]
	}
	if len(p.rest) > 0 && class[p.rest[0]]&endsValue == 0 {
		return errField // text after a closing quote
	}
	p.skip()
	if err := p.time(); err != nil {
		return err
	}
	p.skip()
	if len(p.rest) > 0 && p.rest[0] != '\n' {
		return errAfter
	}
	if text := p.begin[:len(p.begin)-len(p.rest)]; !utf8.Valid(text) {
		return errUTF8
	}
	if len(p.rest) > 0 {
		p.rest = p.rest[1:]
	}
	return nil
}

// classes of bytes that end a part of a line
const (
	endsSeries      = 1 << iota // space, newline
	endsName                    // equals, comma, space, newline
	endsValue                   // comma, space, newline, carriage return
	endsMeasurement             // comma, space, newline
	inMeasurement               // what a backslash escapes in a measurement
	inName                      // what it escapes in keys, and in values of tags
)

var class = func() (c [256]uint8) {
	c[' '] = endsSeries | endsName | endsValue | endsMeasurement | inMeasurement | inName
	c['\n'] = endsSeries | endsName | endsValue | endsMeasurement
	c['\r'] = endsValue
	c[','] = endsName | endsValue | endsMeasurement | inMeasurement | inName
	c['='] = endsName | inName
	return c
}()

// end returns the position of the first byte of b of the class of that no backslash escapes, or
// len(b). A backslash escapes bytes of the class escaped only; before others it stands for itself.
func end(b []byte, of, escaped uint8) int {
	for i := 0; i < len(b); i++ {
		switch {
		case class[b[i]]&of != 0:
			return i
		case b[i] == '\\' && i+1 < len(b) && class[b[i+1]]&escaped != 0:
			i++
		}
	}
	return len(b)
}

// field reads one field.
func (p *Parser) field() error {
	n := end(p.rest, endsName, inName)
	if n == 0 && len(p.rest) == 0 || n == 0 && p.rest[0] == '\n' {
		return errNoFields
	}
	if n == 0 || n == len(p.rest) || p.rest[n] != '=' {
		return errField
	}
	f := Field{Name: p.rest[:n:n]}
	p.rest = p.rest[n+1:]
	if len(p.rest) > 0 && p.rest[0] == '"' {
		f.String = true
		i := 1
		for ; i < len(p.rest) && p.rest[i] != '"'; i++ {
			switch p.rest[i] {
			case '\\':
				i++
			case '\n':
				p.number++
			}
		}
		if i >= len(p.rest) {
			return errString
		}
		p.rest = p.rest[i+1:]
	} else {
		n := 0
		for n < len(p.rest) && class[p.rest[n]]&endsValue == 0 {
			n++
		}
		if n == 0 {
			return errField
		}
		var err error
		if f.Value, err = number(p.rest[:n]); err != nil {
			return err
		}
		p.rest = p.rest[n:]
	}
	p.line.Fields = append(p.line.Fields, f)
	return nil
}

// number reads a value that is not a string.
func number(b []byte) (float64, error) {
	text := remotewrite.View(b)
	switch last := b[len(b)-1]; last {
	case 'i':
		v, err := strconv.ParseInt(text[:len(text)-1], 10, 64)
		if err != nil || text[0] == '+' {
			return 0, fmt.Errorf("value %s is not a 64-bit integer", remotewrite.Quote(string(b)))
		}
		return float64(v), nil
	case 'u':
		v, err := strconv.ParseUint(text[:len(text)-1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("value %s is not a 64-bit unsigned integer", remotewrite.Quote(string(b)))
		}
		return float64(v), nil
	}
	switch text {
	case "t", "T", "true", "True", "TRUE":
		return 1, nil
	case "f", "F", "false", "False", "FALSE":
		return 0, nil
	}
	for _, c := range b { // ParseFloat also reads infinities, NaN, hexadecimals and underscores
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, fmt.Errorf("value %s is neither a number, a boolean nor a string in quotes", remotewrite.Quote(string(b)))
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || b[0] == '+' {
		return 0, fmt.Errorf("value %s is not a 64-bit floating-point number", remotewrite.Quote(string(b)))
	}
	return v, nil
}

// time reads the timestamp, if there is one.
func (p *Parser) time() error {
	n := 0
	for n < len(p.rest) && class[p.rest[n]]&endsValue == 0 {
		n++
	}
	p.line.Time, p.line.HasTime = 0, n > 0
	if n == 0 {
		return nil
	}
	t, err := strconv.ParseInt(remotewrite.View(p.rest[:n]), 10, 64)
	if err != nil || p.rest[0] == '+' {
		return errTime
	}
	p.line.Time, p.rest = t, p.rest[n:]
	return nil
}

// Tag is a tag of a line, without escapes. Its texts may lie in the body.
type Tag struct{ Key, Value string }

// Split splits the Series of a line and appends its tags to dst. Errors mean that it is malformed.
func Split(series []byte, dst []Tag) (measurement string, tags []Tag, err error) {
	n := end(series, endsMeasurement, inMeasurement)
	measurement, series = unescape(series[:n], inMeasurement), series[n:]
	if measurement == "" {
		return "", nil, errMeasurement
	}
	for len(series) > 0 {
		series = series[1:] // a comma
		k := end(series, endsName, inName)
		if k == 0 || k == len(series) || series[k] != '=' {
			return "", nil, errTag
		}
		v := series[k+1:]
		n := end(v, endsName, inName)
		if n == 0 || n < len(v) && v[n] == '=' {
			return "", nil, errTag
		}
		dst = append(dst, Tag{Unescape(series[:k]), Unescape(v[:n])})
		series = v[n:]
	}
	return measurement, dst, nil
}

// Unescape removes the backslashes before commas, equals signs and spaces from a key or a value of
// a tag. The text may share b's memory.
func Unescape(b []byte) string { return unescape(b, inName) }

func unescape(b []byte, escaped uint8) string {
	at := bytes.IndexByte(b, '\\')
	if at < 0 {
		return remotewrite.View(b)
	}
	out := append(make([]byte, 0, len(b)), b[:at]...)
	for i := at; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) && class[b[i+1]]&escaped != 0 {
			i++
		}
		out = append(out, b[i])
	}
	return string(out)
}
