package otlp

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// The resource attributes that identify a service: they become the labels job and instance
// (OpenTelemetry specification, "Prometheus and OpenMetrics compatibility", "Resource attributes").
const (
	serviceName      = "service.name"
	serviceNamespace = "service.namespace"
	serviceInstance  = "service.instance.id"
)

func identifying(attribute string) bool {
	return attribute == serviceName || attribute == serviceNamespace || attribute == serviceInstance
}

// resource is the resource whose metrics are being read.
type resource struct {
	attributes []byte // the fields of its attributes
	key        series.Key
	from, to   uint64 // times of its first and last data point (ns); to = 0: there was none

	read          bool // the rest is known
	err           error
	job, instance string
	list          []series.Label // attributes
	promoted      []series.Label
}

// identify reads the resource's attributes, once.
func (d *decoder) identify() error {
	r := &d.resource
	if r.read {
		return r.err
	}
	r.read = true
	if r.list, r.err = d.attributes(r.attributes); r.err != nil {
		return r.err
	}
	if name, ok := find(r.list, serviceName); ok {
		r.job = name
		if space, ok := find(r.list, serviceNamespace); ok {
			r.job = space + "/" + name
		}
	}
	r.instance, _ = find(r.list, serviceInstance)
	promoted := slices.DeleteFunc(slices.Clone(r.list), func(a series.Label) bool { return !d.set.promotes(a.Name) })
	r.promoted, r.err = d.named("", promoted)
	return r.err
}

// named returns attributes as labels, whose names begin with a prefix.
func (d *decoder) named(prefix string, list []series.Label) (lset []series.Label, _ error) {
	namer := d.set.labelNamer()
	for _, a := range list {
		name, err := namer.Build(prefix + a.Name)
		if err != nil {
			return nil, invalidLabel(err)
		}
		lset = set(lset, name, a.Value)
	}
	return lset, nil
}

// targetName is the metric whose labels are the attributes of a resource.
const targetName = "target_info"

// targetEvery is the distance between samples of target_info: half of the time that a selector
// looks back by default.
const targetEvery = uint64(5 * time.Minute / 2)

// targetInfo adds samples of target_info over the time of the resource's data points, if the
// resource is identified and has further attributes.
func (d *decoder) targetInfo() error {
	r := &d.resource
	if r.to == 0 {
		return nil
	}
	d.text = appendKey(append(d.text[:0], remotewrite.KeysOfOTLP, 't'), r.key)
	k := d.c.Key(d.text)
	if !d.c.Knows(k) {
		if err := d.identify(); err != nil {
			return d.warn(err)
		}
		others, identified := 0, r.job != "" || r.instance != ""
		for _, a := range r.list {
			if !identifying(a.Name) {
				others++
			}
			identified = identified || (a.Name == model.JobLabel || a.Name == model.InstanceLabel) && a.Value != ""
		}
		if others == 0 || !identified {
			return nil
		}
	}
	// The time between data points that lie further apart than a request's may is not filled.
	if windows := int64(key.WindowOf(millis(r.to))-key.WindowOf(millis(r.from))) / key.WindowMillis; d.rules.MaxWindows == 0 || windows < int64(d.rules.MaxWindows) {
		for ns := r.from; ns < r.to; ns += targetEvery {
			d.c.Float(millis(ns), 1)
		}
	}
	d.c.Float(millis(r.to), 1)
	known, err := d.c.Series(k)
	if err != nil {
		return err
	}
	if !known {
		if err := d.learnTarget(); err != nil {
			return err
		}
	}
	return d.describe(segment.Metadata{Metric: targetName, Type: string(model.MetricTypeGauge), Help: "Target metadata"})
}

func (d *decoder) learnTarget() error {
	r := &d.resource
	lset, err := d.name(slices.DeleteFunc(slices.Clone(r.list), func(a series.Label) bool { return !d.set.KeepIdentifying && identifying(a.Name) }))
	if err == nil {
		lset = set(d.identity(lset), model.MetricNameLabel, targetName)
		lset, err = d.rules.Limits.CheckLabels(lset)
	}
	if err != nil {
		return d.c.Refuse(err)
	}
	return d.c.Learn(lset)
}

// identity sets the labels job and instance.
func (d *decoder) identity(lset []series.Label) []series.Label {
	if d.resource.job != "" {
		lset = set(lset, model.JobLabel, d.resource.job)
	}
	if d.resource.instance != "" {
		lset = set(lset, model.InstanceLabel, d.resource.instance)
	}
	return lset
}

// warn records what breaks a rule without being a data point.
func (d *decoder) warn(err error) error {
	if errors.Is(err, ErrMalformed) {
		return err
	}
	return d.c.Reject(err, 0)
}

// describe adds metadata unless it is durable, or what the batch has last for this family. Its
// texts may lie in the message.
func (d *decoder) describe(m segment.Metadata) error {
	if d.c.Describes(m) {
		return nil
	}
	if old, ok := d.described[m.Metric]; ok && old == m {
		return nil
	}
	if d.described == nil {
		d.described = map[string]segment.Metadata{}
	}
	d.described[m.Metric] = m
	return d.c.Metadata(m)
}

func invalidLabel(err error) error {
	return &remotewrite.Rejection{Reason: remotewrite.ReasonInvalidLabel, Err: err}
}

// scope is the instrumentation scope whose metrics are being read, if it becomes labels.
type scope struct {
	key                   series.Key // zero: it has no labels
	name, version, schema string
	attributes            []byte
}

// readScope reads the scope of a ScopeMetrics: scope = 1, schema_url = 3. The scope is an
// InstrumentationScope: name = 1, version = 2, attributes = 3.
func (d *decoder) readScope(msg []byte) error {
	var s scope
	var attributes span
	r := read(msg, "ScopeMetrics")
	for r.next() {
		switch r.num {
		case 1:
			var own span
			in := read(r.bytes(), "InstrumentationScope")
			for in.next() {
				switch in.num {
				case 1:
					s.name = string(in.bytes())
				case 2:
					s.version = string(in.bytes())
				case 3:
					own.add(&in)
				}
			}
			attributes.join(own.bytes)
			if in.err != nil {
				return in.err
			}
		case 3:
			s.schema = string(r.bytes())
		}
	}
	if r.err != nil {
		return r.err
	}
	if s.name == "" {
		return nil
	}
	s.attributes = attributes.bytes
	d.text = append(d.text[:0], 'O', 's')
	for _, part := range []string{s.name, s.version, s.schema} {
		d.text = remotewrite.AppendKey(d.text, part)
	}
	d.text = append(d.text, s.attributes...)
	s.key = d.c.Key(d.text)
	d.scope = s
	return nil
}

// scoped sets the labels of the scope.
func (d *decoder) scoped(lset []series.Label) ([]series.Label, error) {
	s := &d.scope
	if s.name == "" {
		return lset, nil
	}
	list, err := d.attributes(s.attributes)
	if err != nil {
		return nil, err
	}
	own, err := d.named("otel_scope_", list)
	if err != nil {
		return nil, err
	}
	for _, l := range own {
		lset = set(lset, l.Name, l.Value)
	}
	lset = set(lset, "otel_scope_name", s.name)
	lset = set(lset, "otel_scope_version", s.version)
	return set(lset, "otel_scope_schema_url", s.schema), nil
}
