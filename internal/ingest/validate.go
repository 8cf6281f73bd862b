package ingest

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
)

// reason names why samples were refused; it is the label of a counter and stands in errors.
type reason string

// The reasons, in Mimir's words where it has them.
const (
	reasonMissingName   reason = "missing_metric_name"
	reasonInvalidName   reason = "metric_name_invalid"
	reasonInvalidLabel  reason = "label_invalid"
	reasonUnsorted      reason = "labels_not_sorted"
	reasonDuplicate     reason = "duplicate_label_names"
	reasonTooManyLabels reason = "max_label_names_per_series"
	reasonNameTooLong   reason = "label_name_too_long"
	reasonValueTooLong  reason = "label_value_too_long"
	reasonInvalidValue  reason = "label_value_invalid"
	reasonFuture        reason = "too_far_in_future"
	reasonTimeRange     reason = "timestamp_out_of_range"
	reasonHistogram     reason = "invalid_native_histogram"
	reasonNoSamples     reason = "series_without_samples"
	reasonSymbolRef     reason = "invalid_symbol_reference"
	reasonExemplar      reason = "invalid_exemplar"
	reasonMetadata      reason = "invalid_metadata"
	reasonWindows       reason = "too_many_windows"
)

// Rejection is the error for a part of a request that breaks a rule. It always means 400: sending it again is no use.
type Rejection struct {
	Reason reason
	Err    error
}

func (r *Rejection) Error() string { return fmt.Sprintf("%s (%s)", r.Err, r.Reason) }
func (r *Rejection) Unwrap() error { return r.Err }

func rejectf(r reason, format string, args ...any) error {
	return &Rejection{r, fmt.Errorf(format, args...)}
}

// maxShown is how many bytes of an offending name or value an error repeats.
const maxShown = 200

// shown makes outside text fit for an error message.
func shown(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(s[:maxShown], ""), len(s))
	}
	return fmt.Sprintf("%q", s)
}

// checkLabels applies the remote-write specification and the limits to a label set as it was sent. It returns it without empty values,
// which mean "absent" in Prometheus. lset is changed in place.
func (l *Limits) checkLabels(lset []series.Label) ([]series.Label, error) {
	if len(lset) > l.MaxLabelNames {
		return nil, rejectf(reasonTooManyLabels, "series %s has more label names than the limit of %d", describe(lset), l.MaxLabelNames)
	}
	out := lset[:0]
	metric := ""
	for i, x := range lset {
		if i > 0 && x.Name == lset[i-1].Name {
			return nil, rejectf(reasonDuplicate, "duplicate label name %s in series %s", shown(x.Name), describe(lset))
		}
		if i > 0 && x.Name < lset[i-1].Name {
			return nil, rejectf(reasonUnsorted, "label names are not sorted: %s after %s in series %s", shown(x.Name), shown(lset[i-1].Name), describe(lset))
		}
		if err := l.checkLabel(x); err != nil {
			return nil, err
		}
		if x.Name == model.MetricNameLabel {
			metric = x.Value
		}
	}
	if metric == "" {
		return nil, rejectf(reasonMissingName, "series %s has no metric name (label %s)", describe(lset), model.MetricNameLabel)
	}
	if !l.scheme().IsValidMetricName(metric) {
		return nil, rejectf(reasonInvalidName, "invalid metric name %s", shown(metric))
	}
	for _, x := range lset {
		if x.Value != "" {
			out = append(out, x)
		}
	}
	return out, nil
}

func (l *Limits) checkLabel(x series.Label) error {
	switch {
	case len(x.Name) > l.MaxLabelNameBytes:
		return rejectf(reasonNameTooLong, "label name %s is longer than the limit of %d bytes", shown(x.Name), l.MaxLabelNameBytes)
	case !l.scheme().IsValidLabelName(x.Name):
		return rejectf(reasonInvalidLabel, "invalid label name %s", shown(x.Name))
	case len(x.Value) > l.MaxLabelValueBytes:
		return rejectf(reasonValueTooLong, "value of label %s is longer than the limit of %d bytes: %s", shown(x.Name), l.MaxLabelValueBytes, shown(x.Value))
	case !utf8.ValidString(x.Value):
		return rejectf(reasonInvalidValue, "value of label %s is not valid UTF-8", shown(x.Name))
	}
	return nil
}

// maxMetadataBytes bounds each text of a metric family's description, in bytes: a segment's footer carries them all.
const maxMetadataBytes = 4096

// checkMetadata applies the limits to a metric family's description.
func checkMetadata(m *segment.Metadata) error {
	for _, x := range [...]struct{ what, text string }{{"name", m.Metric}, {"help", m.Help}, {"unit", m.Unit}} {
		switch {
		case len(x.text) > maxMetadataBytes:
			return rejectf(reasonMetadata, "%s of metric family %s has %d bytes, the limit is %d", x.what, shown(m.Metric), len(x.text), maxMetadataBytes)
		case !utf8.ValidString(x.text):
			return rejectf(reasonMetadata, "%s of metric family %s is not valid UTF-8", x.what, shown(m.Metric))
		}
	}
	if m.Metric == "" {
		return rejectf(reasonMetadata, "metadata without the name of a metric family")
	}
	return nil
}

func (l *Limits) scheme() model.ValidationScheme {
	if l.LegacyNames {
		return model.LegacyValidation
	}
	return model.UTF8Validation
}

// describe prints a label set, shortened, for an error message.
func describe(lset []series.Label) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, x := range lset {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxShown {
			b.WriteString("…")
			break
		}
		fmt.Fprintf(&b, "%s=%s", strings.ToValidUTF8(x.Name[:min(len(x.Name), maxShown)], "�"), shown(x.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// horizon is the range of timestamps (ms) that a request may carry.
type horizon struct{ max int64 }

func (l *Limits) horizon(now time.Time) horizon {
	return horizon{min(key.MaxTime, now.Add(l.CreationGracePeriod).UnixMilli())}
}

// check returns why a timestamp is refused, or nil.
func (h horizon) check(t int64) error {
	switch {
	case t < key.MinTime || t > key.MaxTime:
		return rejectf(reasonTimeRange, "timestamp %d ms is outside the years 0 to 9999", t)
	case t > h.max:
		return rejectf(reasonFuture, "timestamp %d ms is too far in the future: the limit is now %d ms", t, h.max)
	}
	return nil
}

// checkStart is check for a start timestamp, 0 = unknown. One behind its sample is kept as sent.
func (h horizon) checkStart(st int64) error {
	if st < key.MinTime || st > key.MaxTime {
		return rejectf(reasonTimeRange, "start timestamp %d ms is outside the years 0 to 9999", st)
	}
	return nil
}
