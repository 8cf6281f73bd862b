package remotewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/promlake/promlake/internal/series"
)

// Reason is the reason why samples were refused. It is the label of a counter and part of errors.
type Reason string

// The reasons, in Mimir's words where it has them.
const (
	ReasonMissingName   Reason = "missing_metric_name"
	ReasonInvalidName   Reason = "metric_name_invalid"
	ReasonInvalidLabel  Reason = "label_invalid"
	ReasonUnsorted      Reason = "labels_not_sorted"
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

func (r *Rejection) Error() string { return fmt.Sprintf("%s (%s)", r.Err, r.Reason) }

// Unwrap returns the error without the reason.
func (r *Rejection) Unwrap() error { return r.Err }

func rejectf(r Reason, format string, args ...any) error {
	return &Rejection{r, fmt.Errorf(format, args...)}
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

// describe prints a label set, shortened, for an error message.
func describe(lset []series.Label) string {
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
