package remotewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/series"
)

// Reason is the reason why samples were refused. It is the label of a counter and part of errors.
type Reason string

// The reasons, in Mimir's words where it has them.
const (
	ReasonMissingName   Reason = "missing_metric_name"
	ReasonInvalidName   Reason = "metric_name_invalid"
	ReasonInvalidLabel  Reason = "label_invalid"
	ReasonDuplicate     Reason = "duplicate_label_names"
	ReasonTooManyLabels Reason = "max_label_names_per_series"
	ReasonNameTooLong   Reason = "label_name_too_long"
	ReasonValueTooLong  Reason = "label_value_too_long"
	ReasonInvalidValue  Reason = "label_value_invalid"
	ReasonFuture        Reason = "too_far_in_future"
	ReasonTimeRange     Reason = "timestamp_out_of_range"
	ReasonHistogram     Reason = "invalid_native_histogram"
	ReasonNoSamples     Reason = "series_without_samples"
	ReasonSymbolRef     Reason = "invalid_symbol_reference"
	ReasonExemplar      Reason = "invalid_exemplar"
	ReasonMetadata      Reason = "invalid_metadata"
	ReasonPast          Reason = "too_far_in_past"
	ReasonRelabel       Reason = "relabel_configuration"
	ReasonHourlySeries  Reason = "max_hourly_series"
	ReasonDailySeries   Reason = "max_daily_series"
	ReasonRate          Reason = "rate_limited"
	ReasonWindows       Reason = "too_many_windows"
	ReasonLine          Reason = "invalid_line"
	ReasonString        Reason = "string_value"
	ReasonTemporality   Reason = "aggregation_temporality"
	ReasonPoint         Reason = "invalid_data_point"
)

// Rejection is the error for a part of a request that violates a rule: it is useless to send it
// again.
type Rejection struct {
	Reason Reason
	Err    error
}

func (r *Rejection) Error() string {
	if where, ok := settingOf[r.Reason]; ok {
		return fmt.Sprintf("%s (%s); it is set by %s", r.Err, r.Reason, settings.ForOperator(where))
	}
	return fmt.Sprintf("%s (%s)", r.Err, r.Reason)
}

// settingOf names what sets a limit: for one tenant in the runtime configuration, and for all by a
// flag.
var settingOf = map[Reason]string{
	ReasonTooManyLabels: "max_label_names_per_series of the tenant, or --validation.max-label-names-per-series",
	ReasonNameTooLong:   "max_label_name_length of the tenant, or --validation.max-length-label-name",
	ReasonValueTooLong:  "max_label_value_length of the tenant, or --validation.max-length-label-value",
	ReasonFuture:        "creation_grace_period of the tenant, or --validation.create-grace-period",
	ReasonPast:          "past_grace_period of the tenant, or --validation.past-grace-period",
	ReasonHourlySeries:  "max_hourly_series of the tenant, or --ingest.max-hourly-series",
	ReasonDailySeries:   "max_daily_series of the tenant, or --ingest.max-daily-series",
}

// Unwrap returns the error without the reason.
func (r *Rejection) Unwrap() error { return r.Err }

func rejectf(r Reason, format string, args ...any) error {
	return &Rejection{r, fmt.Errorf(format, args...)}
}

// InvalidLine is the rejection of a line, which is named by its number or by itself (see Quote).
func InvalidLine[T int | string](line T, err error) error {
	return rejectf(ReasonLine, "line %v: %w", line, err)
}

// Tag reads a tag that a sender writes as name=value.
func Tag(text string) (series.Label, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" || name == model.MetricNameLabel {
		return series.Label{}, fmt.Errorf("the tag %s is not a name and a value with = between them", Quote(text))
	}
	return series.Label{Name: name, Value: value}, nil
}

// ErrMalformed marks messages that cannot be decoded at all.
var ErrMalformed = errors.New("malformed remote-write message")

// maxQuoted is how many bytes of an offending name or value an error repeats.
const maxQuoted = 200

// Quote makes text from outside fit for an error: quoted, and shortened.
func Quote(s string) string {
	if len(s) > maxQuoted {
		return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(s[:maxQuoted], ""), len(s))
	}
	return fmt.Sprintf("%q", s)
}

// Describe prints a label set, shortened, for an error message.
func Describe(lset []series.Label) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, x := range lset {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxQuoted {
			b.WriteString("…")
			break
		}
		fmt.Fprintf(&b, "%s=%s", strings.ToValidUTF8(x.Name[:min(len(x.Name), maxQuoted)], "�"), Quote(x.Value))
	}
	b.WriteByte('}')
	return b.String()
}
