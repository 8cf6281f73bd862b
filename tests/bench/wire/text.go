package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// newInflux builds lines of the line protocol, one field a line: the metric is the measurement, the
// labels are tags, and times are in nanoseconds.
func newInflux(series []Series) *Template {
	tag := strings.NewReplacer(",", `\,`, "=", `\=`, " ", `\ `)
	t := &Template{line: func(dst []byte, r *record, ts int64, v float64) []byte {
		dst = strconv.AppendFloat(append(dst, r.before...), v, 'g', -1, 64)
		return append(strconv.AppendInt(append(dst, ' '), ts, 10), "000000\n"...)
	}}
	for _, s := range series {
		var r record
		r.before = append(r.before, tag.Replace(s.Labels.Get(model.MetricNameLabel))...)
		s.Labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel && l.Value != "" {
				r.before = fmt.Appendf(r.before, ",%s=%s", tag.Replace(l.Name), tag.Replace(l.Value))
			}
		})
		r.before = append(r.before, " value="...)
		t.records = append(t.records, r)
	}
	return t
}

// newText builds Prometheus' text format without types.
func newText(series []Series) *Template {
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	t := &Template{line: func(dst []byte, r *record, ts int64, v float64) []byte {
		dst = append(dst, r.before...)
		switch {
		case math.IsInf(v, 1):
			dst = append(dst, "+Inf"...)
		default:
			dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
		}
		return append(strconv.AppendInt(append(dst, ' '), ts, 10), '\n')
	}}
	for _, s := range series {
		var r record
		r.before = append(append(r.before, s.Labels.Get(model.MetricNameLabel)...), '{')
		s.Labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				r.before = fmt.Appendf(r.before, `%s="%s",`, l.Name, escape.Replace(l.Value))
			}
		})
		r.before = append(r.before, "} "...)
		t.records = append(t.records, r)
	}
	return t
}

// CSVFormat is the format of the lines of CSV, as VictoriaMetrics describes columns. All samples
// have one metric: its name, and the labels that not every series has, are labels of columns.
const CSVFormat = "1:label:name,2:label:instance,3:label:job,4:label:labels,5:metric:sample,6:time:unix_ms"

// newCSV builds lines of CSV in CSVFormat.
func newCSV(series []Series) *Template {
	cell := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `",` }
	t := &Template{line: func(dst []byte, r *record, ts int64, v float64) []byte {
		dst = strconv.AppendFloat(append(dst, r.before...), v, 'g', -1, 64)
		return append(strconv.AppendInt(append(dst, ','), ts, 10), '\n')
	}}
	for _, s := range series {
		columns := []string{model.MetricNameLabel, model.InstanceLabel, model.JobLabel}
		before := ""
		for _, name := range columns {
			before += cell(s.Labels.Get(name))
		}
		others := labels.NewBuilder(s.Labels).Del(columns...).Labels()
		t.records = append(t.records, record{before: []byte(before + cell(others.String()))})
	}
	return t
}

// newGraphite builds lines of Graphite's plaintext protocol: all labels but the name are tags, and
// times are in whole seconds. What the protocol separates by is an underscore in tags.
func newGraphite(series []Series) *Template {
	tag := strings.NewReplacer(";", "_", " ", "_", "~", "_")
	t := &Template{line: func(dst []byte, r *record, ts int64, v float64) []byte {
		dst = strconv.AppendFloat(append(dst, r.before...), v, 'g', -1, 64)
		return append(strconv.AppendInt(append(dst, ' '), ts/1000, 10), '\n')
	}}
	for _, s := range series {
		before := s.Labels.Get(model.MetricNameLabel)
		s.Labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel && l.Value != "" {
				before += ";" + l.Name + "=" + tag.Replace(l.Value)
			}
		})
		t.records = append(t.records, record{before: []byte(before + " ")})
	}
	return t
}
