package remotewrite

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Limits bound what one series may look like. Names and meaning are Mimir's.
// The tags are those of package settings.
type Limits struct {
	MaxLabelNames       int           `name:"validation.max-label-names-per-series" default:"100" min:"1" help:"Labels of one series, including its name." when:"Raise it if writes of series with many labels are refused."`
	MaxLabelNameBytes   int           `name:"validation.max-length-label-name" default:"1024" min:"1" help:"Longest label name, in bytes." when:"Rarely."`
	MaxLabelValueBytes  int           `name:"validation.max-length-label-value" default:"2048" min:"1" help:"Longest label value, in bytes." when:"Raise it if labels hold long texts, such as SQL statements."`
	CreationGracePeriod time.Duration `name:"validation.create-grace-period" default:"10m" min:"0" help:"How far in the future the time of a sample may lie." when:"Raise it if senders' clocks are fast."`
	PastGracePeriod     time.Duration `name:"validation.past-grace-period" type:"period" default:"0" min:"0" help:"How far in the past the time of a sample may lie. 0 is any time." when:"Set it if senders with wrong clocks write into ranges that are compacted long ago."`
	NameScheme          string        `name:"validation.name-validation-scheme" default:"utf8" enum:"utf8,legacy" help:"Valid metric and label names, one of ${enum}. legacy allows only [a-zA-Z_:][a-zA-Z0-9_:]*, and no colon in label names." when:"Set legacy if consumers cannot read UTF-8 names."`
}

// LegacyNames is the Limits.NameScheme that refuses UTF-8 names.
const LegacyNames = "legacy"

// DefaultLimits returns the limits for ordinary use.
func DefaultLimits() Limits { return settings.Default[Limits]() }

// CheckLabels applies the remote-write specification and the limits to a label set in any order. It
// returns the set sorted by name, without empty values, which mean "absent" in Prometheus. lset is
// changed in place.
func (l *Limits) CheckLabels(lset []series.Label) ([]series.Label, error) {
	if err := l.sort(lset); err != nil {
		return nil, err
	}
	out := lset[:0]
	metric := ""
	for _, x := range lset {
		if err := l.checkLabel(x); err != nil {
			return nil, err
		}
		if x.Name == model.MetricNameLabel {
			metric = x.Value
		}
	}
	if metric == "" {
		return nil, rejectf(ReasonMissingName, "series %s has no metric name (label %s)", Describe(lset), model.MetricNameLabel)
	}
	if !l.scheme().IsValidMetricName(metric) {
		return nil, rejectf(ReasonInvalidName, "invalid metric name %s", Quote(metric))
	}
	for _, x := range lset {
		if x.Value != "" {
			out = append(out, x)
		}
	}
	return out, nil
}

// sort sorts labels by name. It refuses too many, and two of one name.
func (l *Limits) sort(lset []series.Label) error {
	if err := l.checkNumber(lset); err != nil {
		return err
	}
	series.SortLabels(lset)
	for i := 1; i < len(lset); i++ {
		if lset[i-1].Name == lset[i].Name {
			return rejectf(ReasonDuplicate, "duplicate label name %s in series %s", Quote(lset[i].Name), Describe(lset))
		}
	}
	return nil
}

func (l *Limits) checkNumber(lset []series.Label) error {
	if len(lset) > l.MaxLabelNames {
		return rejectf(ReasonTooManyLabels, "series %s has more label names than the limit of %d", Describe(lset), l.MaxLabelNames)
	}
	return nil
}

func (l *Limits) checkLabel(x series.Label) error {
	switch {
	case len(x.Name) > l.MaxLabelNameBytes:
		return rejectf(ReasonNameTooLong, "label name %s is longer than the limit of %d bytes", Quote(x.Name), l.MaxLabelNameBytes)
	case !l.scheme().IsValidLabelName(x.Name):
		return rejectf(ReasonInvalidLabel, "invalid label name %s", Quote(x.Name))
	case len(x.Value) > l.MaxLabelValueBytes:
		return rejectf(ReasonValueTooLong, "value of label %s is longer than the limit of %d bytes: %s", Quote(x.Name), l.MaxLabelValueBytes, Quote(x.Value))
	case !utf8.ValidString(x.Value):
		return rejectf(ReasonInvalidValue, "value of label %s is not valid UTF-8", Quote(x.Name))
	}
	return nil
}

// maxMetadataBytes bounds each text of a metric family's metadata: a segment's footer carries them.
const maxMetadataBytes = 4096

// fitMetadata cuts help and unit at the limit, and replaces what is not valid UTF-8: the texts of a
// family never decide over its samples. It returns an error if no family can have the name.
func fitMetadata(m *segment.Metadata) error {
	if m.Metric == "" || len(m.Metric) > maxMetadataBytes || !utf8.ValidString(m.Metric) {
		return rejectf(ReasonMetadata, "metadata of the metric family %s: the name must be valid UTF-8 of 1 to %d bytes", Quote(m.Metric), maxMetadataBytes)
	}
	for _, text := range []*string{&m.Help, &m.Unit} {
		s := strings.ToValidUTF8(*text, string(utf8.RuneError))
		if n := maxMetadataBytes; len(s) > n {
			for !utf8.RuneStart(s[n]) {
				n--
			}
			s = s[:n]
		}
		*text = s
	}
	return nil
}

func (l *Limits) scheme() model.ValidationScheme {
	if l.NameScheme == LegacyNames {
		return model.LegacyValidation
	}
	return model.UTF8Validation
}

// TimeRange is the range of timestamps that a request may carry, in ms.
type TimeRange struct{ min, max int64 }

// TimeRange returns the range of timestamps for a request that came at a time.
func (l *Limits) TimeRange(came time.Time) TimeRange {
	r := TimeRange{key.MinTime, min(key.MaxTime, came.Add(l.CreationGracePeriod).UnixMilli())}
	if l.PastGracePeriod > 0 {
		r.min = max(key.MinTime, came.Add(-l.PastGracePeriod).UnixMilli())
	}
	return r
}

// Check returns a *Rejection for a timestamp (ms) that is out of range.
func (r TimeRange) Check(t int64) error {
	switch {
	case t >= r.min && t <= r.max:
		return nil
	case t < key.MinTime || t > key.MaxTime:
		return rejectf(ReasonTimeRange, "timestamp %d ms is outside the years 0 to 9999", t)
	case t > r.max:
		return rejectf(ReasonFuture, "timestamp %d ms is too far in the future: the limit is now %d ms", t, r.max)
	}
	return rejectf(ReasonPast, "timestamp %d ms is too far in the past: the limit is now %d ms", t, r.min)
}

// CheckStart is Check for a start timestamp (ms, 0 = unknown). One later than its sample is kept.
func (r TimeRange) CheckStart(st int64) error {
	if st < key.MinTime || st > key.MaxTime {
		return rejectf(ReasonTimeRange, "start timestamp %d ms is outside the years 0 to 9999", st)
	}
	return nil
}
