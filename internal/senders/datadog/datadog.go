// Package datadog reads series as Datadog's API takes them
// (https://docs.datadoghq.com/api/latest/metrics/#submit-metrics): JSON of versions 1 and 2, and
// the protobuf message of version 2, datadog.agentpayload.MetricPayload; and the sketches of the
// agent's distributions, datadog.agentpayload.SketchPayload
// (https://github.com/DataDog/agent-payload/blob/master/proto/metrics/agent_payload.proto).
package datadog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/jsontext"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// ErrInvalid marks a body that is not a list of series.
var ErrInvalid = errors.New("invalid series")

// Form is the form of a body.
type Form uint8

// The forms.
const (
	V1         Form = 1 // JSON of /api/v1/series
	V2         Form = 2 // JSON of /api/v2/series
	V2Protobuf Form = 3
	Sketches   Form = 4 // protobuf of /api/beta/sketches
)

// Request is one body with the parameters that came with it.
type Request struct {
	Body []byte
	Form Form
}

// noValue is the value of a label for a tag without one, as with VictoriaMetrics.
const noValue = "no_label_value"

// Decode turns a body into a batch of the generation g (see remotewrite.Collect). Series that break
// a rule are left out and reported as offences.
func Decode(r Request, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	d := decoder{Request: r}
	return remotewrite.Collect(g, rules, room, d.read)
}

type decoder struct {
	Request
	c     *remotewrite.Collector
	count int   // of series
	full  error // there is no room

	// The series at hand. Its labels are added before its tags, which they replace.
	metric   string
	labels   []series.Label // host, device and resources
	tags     []string
	kind     kind
	interval float64 // seconds that a point counts; 0: unknown
	points   []point
	hists    int

	sketches [][]byte // messages
}

// read adds all series to the collector.
func (d *decoder) read(c *remotewrite.Collector) error {
	d.c = c
	switch d.Form {
	case V2Protobuf:
		return d.readPayload(d.field, d.end)
	case Sketches:
		return d.readPayload(d.sketchField, d.endSketches)
	}
	p := jsontext.New(d.Body)
	err := p.Object(func(name string) error {
		if name != "series" {
			_, err := p.Raw()
			return err
		}
		return p.Array(func() error {
			d.begin()
			if err := p.Object(func(name string) error { return d.member(p, name) }); err != nil {
				return fmt.Errorf("series %d: %w", d.count, err)
			}
			d.full = d.end()
			return d.full
		})
	})
	if d.full != nil {
		return d.full
	}
	if err == nil {
		err = p.End()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// begin starts a series.
func (d *decoder) begin() {
	d.count++
	d.metric, d.labels, d.tags, d.sketches = "", d.labels[:0], d.tags[:0], d.sketches[:0]
	d.kind, d.interval, d.points, d.hists = other, 0, d.points[:0], 0
}

// end adds the series at hand. An error means that there is no room.
func (d *decoder) end() error {
	delta := d.addPoints()
	key := append(d.c.Text(remotewrite.KeysOfDatadog), 0)
	if delta {
		key[1] = 1
	}
	key = remotewrite.AppendKey(key, d.metric)
	key = binary.AppendUvarint(key, uint64(len(d.labels)))
	for _, l := range d.labels {
		key = remotewrite.AppendKey(remotewrite.AppendKey(key, l.Name), l.Value)
	}
	for _, t := range d.tags {
		key = remotewrite.AppendKey(key, t)
	}
	return d.c.Of(key, func() ([]series.Label, error) { return d.labelSet(delta) }, func(err error) error {
		return &remotewrite.Rejection{Reason: remotewrite.ReasonPoint, Err: fmt.Errorf("series %d: %w", d.count, err)}
	})
}

// labelSet returns the labels of the series at hand, sorted by name. Of equal tags the last counts.
func (d *decoder) labelSet(delta bool) ([]series.Label, error) {
	if d.metric == "" {
		return nil, errors.New(`"metric" is missing`)
	}
	var out []series.Label
	set := func(name, value string) { out = append(out, series.Label{Name: name, Value: value}) }
	for _, t := range d.tags {
		name, value, ok := strings.Cut(t, ":")
		if !ok {
			value = noValue
		}
		if name == "" || name == model.MetricNameLabel {
			return nil, fmt.Errorf("the tag %s has no name, or that of the metric", remotewrite.Quote(t))
		}
		set(name, value)
	}
	for _, l := range d.labels {
		if l.Name == "" || l.Name == model.MetricNameLabel {
			return nil, errors.New("a resource has no type, or the name label as its type")
		}
		set(l.Name, l.Value)
	}
	set(model.MetricNameLabel, d.metric)
	if delta {
		set(series.TemporalityLabel, series.DeltaTemporality)
	}
	out = slices.DeleteFunc(series.LastOfEach(out), func(l series.Label) bool { return l.Value == "" })
	for _, l := range out {
		if !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return nil, errors.New("its texts are not valid UTF-8")
		}
	}
	return out, nil
}
