package app

import (
	"time"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/graphite"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
	"github.com/promlake/promlake/internal/senders/listen"
	"github.com/promlake/promlake/internal/senders/opentsdb"
	"github.com/promlake/promlake/internal/senders/statsd"
)

// The protocols, by the prefixes of their flags, except Pickle, which shares those of Graphite.
const (
	Graphite = "graphite"
	Pickle   = "graphite-pickle"
	Influx   = "influx"
	OpenTSDB = "opentsdb"
	StatsD   = "statsd"
)

// protocol is one that has a listener.
type protocol struct {
	listen.Protocol

	set Lines
}

// protocols returns those that are listened for. Lines of InfluxDB get their names by naming. What
// StatsD adds up is charged to budget.
func (s ListenerSettings) protocols(naming lineprotocol.Naming, budget *memory.Budget, now func() time.Time) (out []protocol) {
	plaintext := func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return graphite.Decode(graphite.Request{Body: lines, Time: came.UnixMilli()}, g, rules, room)
	}
	for _, p := range []protocol{
		{listen.Protocol{Name: Graphite, Flags: Graphite, Decode: plaintext}, s.Graphite.Lines},
		{listen.Protocol{Name: Pickle, Flags: Graphite, Decode: plaintext, Unpack: graphite.FromPickle, MaxMessage: graphite.MaxPickle}, s.Graphite.pickles()},
		{listen.Protocol{
			Name: Influx, Flags: Influx,
			Decode: func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				b, _, err := lineprotocol.Decode(lineprotocol.Request{Body: lines, Naming: naming, Precision: lineprotocol.Nanoseconds, Came: came}, g, rules, room)
				return b, err
			},
		}, s.Influx},
		{listen.Protocol{
			Name: OpenTSDB, Flags: OpenTSDB,
			Decode: func(lines []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				return opentsdb.DecodeLines(lines, g, rules, room)
			},
		}, s.OpenTSDB},
		{listen.Protocol{Name: StatsD, Flags: StatsD}, s.StatsD.lines()},
	} {
		if p.set.Listen == "" {
			continue
		}
		if p.Name == StatsD {
			p.Aggregate = sums{statsd.New(statsd.Settings{
				Timers: s.StatsD.Timers, MaxSeries: s.StatsD.MaxSeries, MaxSetValues: s.StatsD.MaxSetValues, TTL: s.StatsD.TTL,
				MaxStateBytes: s.StatsD.MaxStateBytes, Memory: budget,
			}, now)}
		}
		out = append(out, p)
	}
	return out
}

// sums makes an aggregator that of a listener.
type sums struct{ *statsd.Aggregator }

// Flush implements listen.Aggregate.
func (s sums) Flush() (samples int, size int64, source listen.Source) {
	f := s.Aggregator.Flush()
	return f.Len(), f.Size(), f.Batch
}
