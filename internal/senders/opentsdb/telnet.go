package opentsdb

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

// DecodeLines turns lines of the telnet protocol
// (http://opentsdb.net/docs/build/html/api_telnet/put.html) into a batch of the generation g (see
// remotewrite.Collect):
//
//	put sys.cpu.nice 1700000000 18 host=web01 dc=lga
//
// Lines that cannot be read, other commands among them, are left out and reported as offences with
// the reason ReasonLine.
func DecodeLines(body []byte, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	return remotewrite.Collect(g, rules, room, func(c *remotewrite.Collector) error {
		key := []byte{remotewrite.KeysOfTelnet}
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			if err := addLine(c, line, &key); err != nil {
				return err
			}
		}
		return nil
	})
}

// addLine adds the sample of a line. An error means that there is no room.
func addLine(c *remotewrite.Collector, line []byte, key *[]byte) error {
	invalid := func(err error) error {
		return &remotewrite.Rejection{Reason: remotewrite.ReasonLine, Err: fmt.Errorf("line %s: %w", remotewrite.Quote(string(line)), err)}
	}
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
	*key = append((*key)[:1], fields[1]...)
	for _, tag := range fields[4:] {
		*key = append(append(*key, ' '), tag...)
	}
	known, err := c.Series(c.Key(*key))
	if known || err != nil {
		return err
	}
	lset, err := lineLabels(fields[1], fields[4:])
	if err != nil {
		return c.Refuse(invalid(err))
	}
	return c.Learn(lset)
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
		name, value, ok := strings.Cut(tag, "=")
		if !ok || name == "" || value == "" || name == model.MetricNameLabel {
			return nil, fmt.Errorf("the tag %s is not a name and a value with = between them", remotewrite.Quote(tag))
		}
		out = append(out, series.Label{Name: name, Value: value})
	}
	for _, l := range out {
		if !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return nil, errors.New("metric or tags are not valid UTF-8")
		}
	}
	return out, nil
}
