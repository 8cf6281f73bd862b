// Package push is the protocol of Prometheus' Pushgateway
// (https://github.com/prometheus/pushgateway#api): the groups that requests name, the metrics that
// they carry, and what a push changes in a store of samples.
//
// A push becomes one sample of each of its series. Series that it replaces or deletes get stale
// markers. For that, the store has a State for each group, which names the series that the group
// has.
package push

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// ErrInvalid marks a push that breaks a rule of the Pushgateway.
var ErrInvalid = errors.New("pushed metrics are invalid")

// TooLarge reports a push that exceeds a limit of groups.
type TooLarge struct {
	Limit string // the setting's name
	Max   int64
	Got   int64
}

func (e *TooLarge) Error() string {
	if e.Limit == LimitSeries {
		return fmt.Sprintf("the group would have %d series, more than the limit of %d (%s): push to more groups, or delete what is not needed", e.Got, e.Max, e.Limit)
	}
	return fmt.Sprintf("pushed metrics of %d bytes exceed the limit of %d bytes (%s): push to more groups", e.Got, e.Max, e.Limit)
}

// The names of the limits.
const (
	LimitSeries = "push.max-series"
	LimitBytes  = "push.max-bytes"
)

// Settings are the limits of pushes. The tags are those of package settings.
type Settings struct {
	MaxBytes  int64 `name:"push.max-bytes" type:"bytes" default:"4MiB" min:"1" help:"Largest push to a Pushgateway path, decompressed." when:"Raise it if jobs that push get 413 and cannot push to more groups."`
	MaxSeries int   `name:"push.max-series" default:"10000" min:"1" help:"Series of a group of a Pushgateway path. The store has an object that names them." when:"Together with --push.max-bytes."`
}

// The metrics that each group has in addition: times in seconds since the epoch, 0 for never.
const (
	pushTime    = "push_time_seconds"
	failureTime = "push_failure_time_seconds"
)

// help has the help texts of these metrics.
var help = map[string]string{
	pushTime:    "Last Unix time when changing this group succeeded.",
	failureTime: "Last Unix time when changing this group failed.",
}

// Group is a grouping key: labels that every series of a group has, sorted by name. Labels without
// a value remove those of the series.
type Group []series.Label

// base64Suffix marks an element of a path whose successor is encoded in base64url.
const base64Suffix = "@base64"

// ParseGroup reads the escaped path of a request after /metrics/, such as
// job/backup/instance@base64/d2ViLzE=. As in the Pushgateway, the job comes first and counts before
// a later label of this name; of other equal names the last counts.
func ParseGroup(path string) (Group, error) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	if len(parts)%2 != 0 {
		return nil, fmt.Errorf("%w: the path must have a value for each label: /metrics/job/JOB/LABEL/VALUE, got %d elements after /metrics/", ErrInvalid, len(parts))
	}
	var g Group
	for i := 0; i < len(parts); i += 2 {
		l, err := labelOf(parts[i], parts[i+1])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		switch {
		case i == 0 && l.Name != "job":
			return nil, fmt.Errorf("%w: the path must begin with /metrics/job/JOB, got the label %s", ErrInvalid, remotewrite.Quote(l.Name))
		case i == 0 && l.Value == "":
			return nil, fmt.Errorf("%w: job name is required", ErrInvalid)
		case i > 0 && l.Name == "job":
			continue
		}
		g = append(g, l)
	}
	return series.LastOfEach(g), nil
}

// With returns the group whose key has further labels, instead of those of the same name.
func (g Group) With(labels []series.Label) (Group, error) {
	for _, l := range labels {
		if err := checkName(l.Name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return series.LastOfEach(append(slices.Clone(g), labels...)), nil
}

// labelOf reads two elements of a path.
func labelOf(name, value string) (l series.Label, err error) {
	if l.Name, err = url.PathUnescape(name); err != nil {
		return l, err
	}
	if l.Value, err = url.PathUnescape(value); err != nil {
		return l, err
	}
	var encoded bool
	if l.Name, encoded = strings.CutSuffix(l.Name, base64Suffix); encoded {
		// An empty value is written as padding only: an element of a path cannot be empty.
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(l.Value, "="))
		if err != nil {
			return l, fmt.Errorf("invalid base64 encoding for label %s=%s: %w", l.Name, remotewrite.Quote(l.Value), err)
		}
		l.Value = string(b)
	}
	if err := checkName(l.Name); err != nil {
		return l, err
	}
	if !utf8.ValidString(l.Value) {
		return l, errors.New("the value of label " + l.Name + " is not valid UTF-8")
	}
	return l, nil
}

// checkName refuses what cannot be the name of a label of a grouping key.
func checkName(name string) error {
	if !model.UTF8Validation.IsValidLabelName(name) || strings.HasPrefix(name, model.ReservedLabelPrefix) {
		return fmt.Errorf("improper label name %s", remotewrite.Quote(name))
	}
	return nil
}

// ID identifies the group within its tenant: 32 lower-case hexadecimal digits.
func (g Group) ID() string {
	var text []byte
	for _, l := range g {
		text = remotewrite.AppendKey(remotewrite.AppendKey(text, l.Name), l.Value)
	}
	sum := xxh3.Hash128(text).Bytes()
	return hex.EncodeToString(sum[:])
}
