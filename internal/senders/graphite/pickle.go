package graphite

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

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
