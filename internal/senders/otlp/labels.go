package otlp

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// set sets a label as Prometheus does: it replaces one with this name, and an empty value removes
// it.
func set(lset []series.Label, name, value string) []series.Label {
	i := slices.IndexFunc(lset, func(l series.Label) bool { return l.Name == name })
	switch {
	case i >= 0 && value == "":
		return slices.Delete(lset, i, i+1)
	case i >= 0:
		lset[i].Value = value
	case value != "":
		return append(lset, series.Label{Name: name, Value: value})
	}
	return lset
}

// find returns the value of the first label or attribute with a name.
func find(lset []series.Label, name string) (string, bool) {
	for _, l := range lset {
		if l.Name == name {
			return l.Value, true
		}
	}
	return "", false
}

// name turns attributes into labels, in d.labels. Values of attributes whose names become equal are
// joined with semicolons, in the order of the attributes' names.
func (d *decoder) name(list []series.Label) ([]series.Label, error) {
	list = slices.DeleteFunc(list, func(a series.Label) bool { return a.Name == model.MetricNameLabel })
	series.SortLabels(list)
	lset := d.labels[:0]
	namer, utf8 := d.set.labelNamer(), d.set.UTF8()
	for _, a := range list {
		if utf8 {
			if a.Value != "" {
				lset = append(lset, a)
			}
			continue
		}
		name, err := namer.Build(a.Name)
		if err != nil {
			return nil, invalidLabel(err)
		}
		value := a.Value
		if old, _ := find(lset, name); old != "" {
			value = old + ";" + value
		}
		lset = set(lset, name, value)
	}
	d.labels = lset
	return lset, nil
}

// shared returns the labels that all series of a data point share, in d.labels.
func (d *decoder) shared(attributes []byte) ([]series.Label, error) {
	if err := d.identify(); err != nil {
		return nil, err
	}
	list, err := d.attributes(attributes)
	if err != nil {
		return nil, err
	}
	lset, err := d.name(list)
	if err != nil {
		return nil, err
	}
	for _, l := range d.resource.promoted {
		if old, _ := find(lset, l.Name); old == "" {
			lset = set(lset, l.Name, l.Value)
		}
	}
	lset = d.identity(lset)
	if lset, err = d.scoped(lset); err != nil {
		return nil, err
	}
	if d.set.TypeAndUnitLabels {
		if t := d.typeName(); t != string(model.MetricTypeUnknown) {
			lset = set(lset, model.MetricTypeLabel, t)
		}
		units := otlptranslator.UnitNamer{UTF8Allowed: d.set.UTF8()}
		if unit := d.metric.family.unit; unit != "" {
			lset = set(lset, model.MetricUnitLabel, units.Build(unit))
		}
	}
	if d.metric.temporality == delta && !d.set.NativeDelta {
		lset = set(lset, series.TemporalityLabel, series.DeltaTemporality)
	}
	d.labels = lset
	return lset, nil
}

// A member is one of the series that a data point consists of.
type member struct {
	kind  byte // part of the series' key
	value float64
}

// The kinds of members.
const (
	memberSum      = 's'
	memberCount    = 'c'
	memberBucket   = 'b' // value is the upper bound
	memberQuantile = 'q' // value is the quantile
)

// suffixes are what members add to the metric's name, and memberLabels the labels that they add.
var (
	suffixes     = map[byte]string{memberSum: "_sum", memberCount: "_count", memberBucket: "_bucket"}
	memberLabels = map[byte]string{memberBucket: model.BucketLabel, memberQuantile: model.QuantileLabel}
)

// of returns the labels of a member, sorted by name, or why it has none. It keeps shared as it is.
func (d *decoder) of(shared []series.Label, m member) ([]series.Label, error) {
	f := d.metric.family
	if f.err != nil {
		return nil, invalidName(f.err)
	}
	lset := slices.Grow(slices.Clone(shared), 2)
	if name := memberLabels[m.kind]; name != "" {
		lset = set(lset, name, strconv.FormatFloat(m.value, 'f', -1, 64))
	}
	lset = set(lset, model.MetricNameLabel, f.name+suffixes[m.kind])
	lset, err := d.rules.Limits.CheckLabels(remotewrite.Extend(lset, d.rules.Labels))
	if err != nil {
		return nil, fmt.Errorf("metric %s: %w", quote(d.metric.name), err)
	}
	return lset, nil
}
