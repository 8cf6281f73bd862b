// Package push is the protocol of Prometheus' Pushgateway
// (https://github.com/prometheus/pushgateway#api): the groups that requests name, the metrics that
// they carry, and what a push changes in a store of samples.
//
// A push becomes one sample of each of its series. Series that it replaces or deletes get stale
// markers. For that, the store has a State for each group, which names the series that the group
// has.
package push

import (
	"errors"
	"fmt"
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
