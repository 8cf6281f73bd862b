package statsd

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/series"
)

// labelsOf returns the labels of an event, sorted by name, and what is ignored of its tags: those
// that are not a name and a value. Of equal tags the last counts. Names are made valid in the way of
// statsd_exporter: what is not a letter, digit, underscore or colon becomes an underscore.
func labelsOf(e *event) (lset []series.Label, ignored, err error) {
	if !utf8.Valid(e.name) || !utf8.Valid(e.tags) {
		return nil, nil, errors.New("names and tags are not valid UTF-8")
	}
	metric, tags, separator := splitName(string(e.name))
	if metric == "" {
		return nil, nil, errors.New("the metric has no name")
	}
	out := []series.Label{{Name: model.MetricNameLabel, Value: escape(metric)}}
	add := func(text, separator string) {
		for tag := range strings.SplitSeq(text, ",") {
			if tag = strings.TrimPrefix(strings.TrimSpace(tag), "#"); tag == "" { // some senders repeat the #
				continue
			}
			name, value, _ := strings.Cut(tag, separator)
			if name = escape(name); name == "" || value == "" || name == model.MetricNameLabel {
				ignored = refuse(ReasonTag, "metric %s: the tag %s is not a name and a value with %s between them", quote(e.name), quote([]byte(tag)), separator)
				continue
			}
			out = append(out, series.Label{Name: name, Value: value})
		}
	}
	add(tags, separator)
	add(string(e.tags), ":")
	return series.LastOfEach(out), ignored, nil
}

// splitName divides a name from tags: name,tag=v (InfluxDB), name#tag=v (Librato), name[tag=v]rest
// (SignalFx).
func splitName(text string) (name, tags, separator string) {
	if before, rest, ok := strings.Cut(text, "["); ok {
		if inside, after, ok := strings.Cut(rest, "]"); ok {
			return before + after, inside, "="
		}
	}
	if i := strings.IndexAny(text, ",#"); i >= 0 {
		return text[:i], text[i+1:], "="
	}
	return text, "", "="
}

// escape makes a name valid.
func escape(name string) string {
	if name != "" && '0' <= name[0] && name[0] <= '9' {
		name = "_" + name
	}
	return model.EscapeName(name, model.UnderscoreEscaping)
}
