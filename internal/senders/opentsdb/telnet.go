package opentsdb

import (
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
