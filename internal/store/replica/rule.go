// Package replica decides which samples count of a series that several replicas of one Prometheus
// have written. The replicas are stored apart, as different series: they differ in the value of one
// label. A reader shows them as one series without that label.
//
// The replicas of a series are ordered by the values of their label. Of each replica, this is known
// from its own samples alone:
//
//   - Its interval at a sample is the median of the last three distances between its samples, of
//     those that begin within the last 5 minutes (Reach). Of two it is the shorter one.
//   - A replica is present from one sample to the next if they are no further apart than 7/4 of the
//     interval, or the failover timeout where no interval is known, and no stale marker lies
//     between. Otherwise it is absent between them.
//   - It is absent before its first sample, and after a stale marker.
//   - If no sample follows within the failover timeout, the replica is absent as soon as any
//     replica has a sample later than that timeout. Until then it is present for that long: at the
//     live edge nobody knows yet whether it is only late.
//
// A sample counts if all replicas before its own in the order are absent at its time. A stale
// marker counts if all other replicas are absent, so that the end of one replica does not end the
// series.
//
// Two replicas read one counter at different moments, their clocks differ by up to Skew, and a scrape
// takes some time. So where the series passes from one replica to another, the value may seem to
// fall although the counter was never reset. There, samples of the later replica in the order are
// left out until the counter has reached the value of the other sample (or, where the series returns
// to the earlier replica, from when on it has exceeded it), for at most Skew. Resets that one of the
// two, or both, have seen within Reach are taken into account.
//
// Whether a sample counts depends on nothing but the samples within Around of its time: neither on
// the range of a query nor on the objects in which the samples are.
package replica

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Settings say which series are replicas of one another. The tags are those of package settings.
type Settings struct {
	Dedup           bool          `name:"query.ha-dedup" negatable:"" default:"true" help:"Show the series of several replicas of a Prometheus, which differ in --query.ha-replica-label alone, as one series without that label." when:"Turn it off to see every replica. The runtime configuration sets it for single tenants."`
	ReplicaLabel    string        `name:"query.ha-replica-label" default:"__replica__" help:"Label that tells replicas apart." when:"If your external_labels have another one, such as prometheus_replica."`
	ClusterLabel    string        `name:"query.ha-cluster-label" default:"cluster" help:"Label that replicas share. A series without it, or without --query.ha-replica-label, belongs to no replicas." when:"If your external_labels have another one."`
	FailoverTimeout time.Duration `name:"query.ha-failover-timeout" default:"30s" min:"1s" max:"5m" help:"Time without samples of a replica after which the next one takes over at the end of the data. Earlier gaps are filled whatever their length." when:"Raise it if replicas write with a delay of more than half a minute."`
}

// Reach is the largest interval (ms) between two samples of a series that is present, Around is how
// far (ms) the samples lie at most from a time on which they decide, and Skew is how far (ms) the
// clocks of replicas may differ.
const (
	Reach  = int64(5 * time.Minute / time.Millisecond)
	Around = 3 * Reach
	Skew   = int64(30 * time.Second / time.Millisecond)
)

// Rule is Settings in use. The zero value takes no series for a replica.
type Rule struct {
	Replica, Cluster string // labels; "": there are no replicas
	Failover         int64  // ms
}

// Rule returns the rule of the settings.
func (s Settings) Rule() Rule {
	if !s.Dedup {
		return Rule{}
	}
	return Rule{Replica: s.ReplicaLabel, Cluster: s.ClusterLabel, Failover: s.FailoverTimeout.Milliseconds()}
}

// Validate reports labels that cannot tell replicas apart, by the names of the settings of the
// replicas' label and of the cluster's.
func (s Settings) Validate(replica, cluster string) error {
	switch {
	case s.ReplicaLabel == "" || s.ReplicaLabel == model.MetricNameLabel:
		return fmt.Errorf("%s: want the name of a label that only tells replicas apart, got %q", replica, s.ReplicaLabel)
	case s.ClusterLabel == "":
		return fmt.Errorf("%s: want the name of a label, got %q", cluster, s.ClusterLabel)
	case s.ReplicaLabel == s.ClusterLabel:
		return fmt.Errorf("%s: want another label than %s, got %q for both", replica, cluster, s.ReplicaLabel)
	}
	return nil
}

// For returns the rule of a read that asks for series by these matchers: whoever names the label of
// the replicas asks for each of them.
func (r Rule) For(sets ...[]*labels.Matcher) Rule {
	for _, ms := range sets {
		if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return m.Name == r.Replica }) {
			return Rule{}
		}
	}
	return r
}

// On reports whether any series can be a replica.
func (r Rule) On() bool { return r.Replica != "" }

// Has reports whether a series is that of a replica.
func (r Rule) Has(lset labels.Labels) bool {
	return r.On() && lset.Get(r.Replica) != "" && lset.Get(r.Cluster) != ""
}

// Shown returns the labels by which the series of a replica is shown.
func (r Rule) Shown(lset labels.Labels) labels.Labels {
	return labels.NewBuilder(lset).Del(r.Replica).Labels()
}
