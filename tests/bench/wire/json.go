package wire

import (
	"encoding/json"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// newOpenTSDB builds lists of data points in JSON: all labels but the name are tags, and times are
// in milliseconds.
func newOpenTSDB(series []Series) *Template {
	t := &Template{head: []byte("["), tail: []byte("]"), line: func(dst []byte, r *record, ts int64, v float64) []byte {
		dst = strconv.AppendFloat(append(dst, r.before...), v, 'g', -1, 64)
		return append(strconv.AppendInt(append(dst, `,"timestamp":`...), ts, 10), "},"...)
	}}
	for _, s := range series {
		name, tags := split(s.Labels)
		before := `{"metric":` + quote(name) + `,"tags":` + quote(tags) + `,"value":`
		t.records = append(t.records, record{before: []byte(before)})
	}
	return t
}

// newJSONLines builds lines of JSON, each with one sample of a series.
func newJSONLines(series []Series) *Template {
	t := &Template{line: func(dst []byte, r *record, ts int64, v float64) []byte {
		dst = strconv.AppendFloat(append(dst, r.before...), v, 'g', -1, 64)
		return append(strconv.AppendInt(append(dst, `],"timestamps":[`...), ts, 10), "]}\n"...)
	}}
	for _, s := range series {
		t.records = append(t.records, record{before: []byte(`{"metric":` + quote(s.Labels.Map()) + `,"values":[`)})
	}
	return t
}

// split returns a series' metric name and its other labels.
func split(ls labels.Labels) (name string, tags map[string]string) {
	tags = ls.Map()
	delete(tags, model.MetricNameLabel)
	return ls.Get(model.MetricNameLabel), tags
}

// quote returns a text or an object of texts as JSON, an object sorted by name.
func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and maps of texts always have a form
	}
	return string(b)
}
