package imports

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/prom/timeparam"
)

// CSV is one body with the parameters that came with it. The format of its lines is
// VictoriaMetrics' (https://docs.victoriametrics.com/victoriametrics/#how-to-import-csv-data):
//
//	2:label:job,4:metric:demo,5:time:unix_s
type CSV struct {
	Body   []byte
	Format CSVFormat
	Time   int64 // ms, of lines without a time
}

// DecodeCSV turns a body into a batch of the generation g (see remotewrite.Collect). Each column of
// kind metric that is not empty is a sample. Lines that cannot be read are left out and reported as
// offences with the reason ReasonLine.
func DecodeCSV(r CSV, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	d := csvDecoder{CSV: r}
	return remotewrite.Collect(g, rules, room, d.read)
}

type csvDecoder struct {
	CSV
	c      *remotewrite.Collector
	key    []byte
	labels []series.Label
	values []float64 // of the line's metrics
}

// read adds all lines to the collector.
func (d *csvDecoder) read(c *remotewrite.Collector) error {
	d.c = c
	if err := c.Take(perField * int64(d.widest())); err != nil {
		return err
	}
	in := csv.NewReader(bytes.NewReader(d.Body))
	in.FieldsPerRecord, in.ReuseRecord = -1, true
	// The key begins with what all series of the request share.
	d.key = binary.AppendUvarint(append(d.key[:0], remotewrite.KeysOfCSV), uint64(len(d.Format.labels)))
	for _, l := range d.Format.labels {
		d.key = remotewrite.AppendKey(d.key, l.name)
	}
	prefix := len(d.key)
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		line, bad := 0, error(nil)
		if err == nil {
			line, _ = in.FieldPos(0)
			bad, err = d.line(fields, prefix)
		} else if e, ok := errors.AsType[*csv.ParseError](err); ok {
			line, bad, err = e.Line, fmt.Errorf("column %d: %w", e.Column, e.Err), nil
		}
		if bad != nil {
			err = c.Reject(remotewrite.InvalidLine(line, bad), 1)
		}
		if err != nil {
			return err
		}
	}
}

// perField is the memory (bytes) that package csv needs for a field.
const perField = 40

// widest bounds the number of fields of a line.
func (d *csvDecoder) widest() int {
	if bytes.IndexByte(d.Body, '"') >= 0 { // which may quote the end of a line
		return 1 + bytes.Count(d.Body, []byte(","))
	}
	most := 0
	for line := range bytes.Lines(d.Body) {
		most = max(most, 1+bytes.Count(line, []byte(",")))
	}
	return most
}

// line adds the samples of a line, all or, if it is bad, none.
func (d *csvDecoder) line(fields []string, prefix int) (bad, err error) {
	if len(fields) < d.Format.columns {
		return fmt.Errorf("%d columns, the format has %d", len(fields), d.Format.columns), nil
	}
	t := d.Time
	if at := d.Format.time; at >= 0 {
		if t, err = d.Format.clock.Millis(fields[at]); err != nil {
			return fmt.Errorf("column %d: %w", at+1, err), nil
		}
	}
	d.values = d.values[:0]
	for _, m := range d.Format.metrics {
		v, err := strconv.ParseFloat(fields[m.at], 64)
		if err != nil && fields[m.at] != "" {
			return fmt.Errorf("column %d: %s is not a number", m.at+1, remotewrite.Quote(fields[m.at])), nil
		}
		d.values = append(d.values, v)
	}
	d.key = d.key[:prefix]
	for _, l := range d.Format.labels {
		d.key = remotewrite.AppendKey(d.key, fields[l.at])
	}
	shared := len(d.key)
	for i, m := range d.Format.metrics {
		if fields[m.at] == "" {
			continue
		}
		d.c.Float(t, d.values[i])
		d.key = append(d.key[:shared], m.name...)
		if err := d.c.Of(d.key, func() ([]series.Label, error) { return d.labelsOf(fields, m.name), nil }, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// labelsOf returns the labels of a metric of a line.
func (d *csvDecoder) labelsOf(fields []string, metric string) []series.Label {
	d.labels = append(d.labels[:0], series.Label{Name: model.MetricNameLabel, Value: metric})
	for _, l := range d.Format.labels {
		d.labels = append(d.labels, series.Label{Name: l.name, Value: fields[l.at]})
	}
	return d.labels
}

// CSVFormat tells what the columns of a request's lines are.
type CSVFormat struct {
	metrics []column
	labels  []column
	time    int // position; -1: no column has a time
	clock   timeparam.Clock
	columns int // that a line must have at least
}

// column is a column with a name.
type column struct {
	at   int // position, from 0
	name string
}

// ParseCSVFormat parses a list of <column>:<type>:<context>, where columns count from 1, and the
// type is metric with a name, label with a name, or time with a clock.
func ParseCSVFormat(text string) (CSVFormat, error) {
	f := CSVFormat{time: -1}
	used := map[int]bool{}
	for _, part := range splitColumns(text) {
		position, rest, _ := strings.Cut(part, ":")
		kind, context, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(position)
		if err != nil || n < 1 || n > maxColumns || !ok || context == "" {
			return f, fmt.Errorf("%q has not the form <column from 1 to %d>:<metric, label or time>:<name or format of the time>", part, maxColumns)
		}
		if used[n] {
			return f, fmt.Errorf("column %d is named twice", n)
		}
		used[n], f.columns = true, max(f.columns, n)
		switch c := (column{n - 1, context}); {
		case kind == "metric":
			f.metrics = append(f.metrics, c)
		case kind == "label":
			f.labels = append(f.labels, c)
		case kind != "time":
			return f, fmt.Errorf("%q is not one of metric, label, time", kind)
		case f.time >= 0:
			return f, errors.New("two columns are a time, want one")
		default:
			f.time = c.at
			if f.clock, err = timeparam.ParseClock(context); err != nil {
				return f, err
			}
		}
	}
	if len(f.metrics) == 0 {
		return f, errors.New("no column is a metric, want at least one as in 1:label:city,2:metric:temperature")
	}
	return f, nil
}

// maxColumns is the highest number of a column.
const maxColumns = 10_000

// splitColumns divides at commas that begin a column: a custom format of times may have commas too.
func splitColumns(text string) (parts []string) {
	for part := range strings.SplitSeq(text, ",") {
		digits := strings.TrimLeft(part, "0123456789")
		if begins := len(digits) < len(part) && strings.HasPrefix(digits, ":"); begins || len(parts) == 0 {
			parts = append(parts, part)
		} else {
			parts[len(parts)-1] += "," + part
		}
	}
	return parts
}
