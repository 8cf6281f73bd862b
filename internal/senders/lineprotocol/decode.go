package lineprotocol

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// Naming decides which series a field belongs to: metric {measurement}{Separator}{field}, the tags
// as labels, and the database as one more label, unless a tag has its name. The tags are those of
// package settings.
type Naming struct {
	Separator     string `name:"influx.measurement-field-separator" default:"_" help:"Text between measurement and field in the metric names of InfluxDB's line protocol." when:"To keep the names of another system, before the first write."`
	DatabaseLabel string `name:"influx.database-label" default:"db" help:"Label for the database or bucket of a request with InfluxDB's line protocol. Empty means none." when:"If db is the name of a label with another meaning."`
}

// Precision is the unit of a request's timestamps.
type Precision struct {
	unit time.Duration
	auto bool // each timestamp's magnitude decides
}

// Nanoseconds is the precision of lines that come with no other.
var Nanoseconds = Precision{unit: time.Nanosecond}

// ParsePrecision parses the precision of a request to one of InfluxDB's write APIs. The default of
// v1 and v2 is nanoseconds, that of v3 is auto.
func ParsePrecision(text string) (Precision, error) {
	switch text {
	case "", "n", "ns", "nanosecond":
		return Nanoseconds, nil
	case "u", "us", "µ", "µs", "microsecond":
		return Precision{unit: time.Microsecond}, nil
	case "ms", "millisecond":
		return Precision{unit: time.Millisecond}, nil
	case "s", "second":
		return Precision{unit: time.Second}, nil
	case "m":
		return Precision{unit: time.Minute}, nil
	case "h":
		return Precision{unit: time.Hour}, nil
	case "auto":
		return Precision{auto: true}, nil
	}
	return Precision{}, fmt.Errorf("precision %q is not one of n, u, ms, s, m, h, ns, us, auto, nanosecond, microsecond, millisecond, second", text)
}

// The thresholds of auto precision, those of InfluxDB 3: a smaller magnitude is in seconds,
// milliseconds, microseconds
// (https://docs.influxdata.com/influxdb3/core/write-data/http-api/v3-write-lp/#auto-precision-detection).
const (
	secondsBelow      = 5_000_000_000
	millisecondsBelow = secondsBelow * 1_000
	microsecondsBelow = millisecondsBelow * 1_000
)

// millis converts a timestamp to ms. One that does not fit becomes a time that the rules refuse.
func (p Precision) millis(t int64) int64 {
	unit := p.unit
	if p.auto {
		switch {
		case within(t, secondsBelow):
			unit = time.Second
		case within(t, millisecondsBelow):
			unit = time.Millisecond
		case within(t, microsecondsBelow):
			unit = time.Microsecond
		default:
			unit = time.Nanosecond
		}
	}
	if unit < time.Millisecond {
		per := int64(time.Millisecond / unit)
		ms := t / per
		if t%per < 0 {
			ms-- // towards the past, also before 1970
		}
		return ms
	}
	per := int64(unit / time.Millisecond)
	if t > key.MaxTime/per || t < key.MinTime/per {
		return key.MaxTime + 1
	}
	return t * per
}

func within(t, magnitude int64) bool { return -magnitude < t && t < magnitude }

// Request is one body with the parameters that came with it.
type Request struct {
	Body      []byte
	Naming    Naming
	Database  string
	Precision Precision
	Came      time.Time // the time of lines without a timestamp
}

// Decode turns a body into a batch of the generation g (see remotewrite.Collect). Each field with a
// number or a boolean is a sample; strings is the number of fields with strings, which are none.
// Lines that cannot be read are left out and reported as offences with the reason ReasonLine.
func Decode(r Request, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (b *remotewrite.Batch, strings int, err error) {
	d := decoder{Request: r, came: r.Came.UnixMilli()}
	b, err = remotewrite.Collect(g, rules, room, d.read)
	return b, d.strings, err
}

type decoder struct {
	Request
	came    int64 // ms
	strings int   // fields with strings

	key    []byte // of the series at hand
	prefix int    // bytes of key that all series of a line share
	tags   []Tag
	labels []series.Label
}

// read adds all lines to the collector.
func (d *decoder) read(c *remotewrite.Collector) error {
	p := NewParser(d.Body)
	d.key = remotewrite.AppendKey(append(d.key[:0], remotewrite.KeysOfLineProtocol), d.Database)
	database := len(d.key)
	for {
		l, err := p.Next()
		c.Place(p.number)
		if err != nil {
			if err := c.Reject(&remotewrite.Rejection{Reason: remotewrite.ReasonLine, Err: err}, 1); err != nil {
				return err
			}
			continue
		}
		if l == nil {
			return nil
		}
		t := d.came
		if l.HasTime {
			t = d.Precision.millis(l.Time)
		}
		d.key = remotewrite.AppendKey(d.key[:database], l.Series)
		d.prefix = len(d.key)
		for _, f := range l.Fields {
			if f.String {
				d.strings++
				c.Skip(remotewrite.ReasonString, 1)
				continue
			}
			d.key = append(d.key[:d.prefix], f.Name...)
			c.Float(t, f.Value)
			err := c.Of(d.key, func() ([]series.Label, error) { return d.name(l.Series, f.Name) }, func(err error) error {
				return remotewrite.InvalidLine(l.Number, err)
			})
			if err != nil {
				return err
			}
		}
	}
}

// name returns the labels of a field's series, in d.labels.
func (d *decoder) name(text, field []byte) ([]series.Label, error) {
	measurement, tags, err := Split(text, d.tags[:0])
	if err != nil {
		return nil, err
	}
	d.tags = tags
	d.labels = append(d.labels[:0], series.Label{Name: model.MetricNameLabel, Value: measurement + d.Naming.Separator + Unescape(field)})
	database := d.Naming.DatabaseLabel != "" && d.Database != ""
	for _, t := range tags {
		d.labels = append(d.labels, series.Label{Name: t.Key, Value: t.Value})
		database = database && t.Key != d.Naming.DatabaseLabel
	}
	if database {
		d.labels = append(d.labels, series.Label{Name: d.Naming.DatabaseLabel, Value: d.Database})
	}
	return d.labels, nil
}
