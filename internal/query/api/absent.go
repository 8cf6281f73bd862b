package api

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

// The parts of a Prometheus server that Promlake does not have. Clients request their routes
// nevertheless, so they answer as a Prometheus that has none of them configured.

// absent is empty lists of scrape pools, targets, alertmanagers and rules.
type absent struct{}

func (absent) ScrapePools() []string                       { return []string{} }
func (absent) TargetsActive() map[string][]*scrape.Target  { return map[string][]*scrape.Target{} }
func (absent) TargetsDropped() map[string][]*scrape.Target { return map[string][]*scrape.Target{} }
func (absent) TargetsDroppedCounts() map[string]int        { return map[string]int{} }
func (absent) Alertmanagers() []*url.URL                   { return nil }
func (absent) DroppedAlertmanagers() []*url.URL            { return nil }
func (absent) RuleGroups() []*rules.Group                  { return nil }
func (absent) AlertingRules() []*rules.AlertingRule        { return nil }

func (absent) ScrapePoolConfig(pool string) (*config.ScrapeConfig, error) {
	return nil, fmt.Errorf("scrape pool %q not found", pool)
}

// errNoTSDB is the error of operations that need a local TSDB. No route calls them.
var errNoTSDB = errors.New("promlake has no local TSDB")

// noTSDB stands for the local database that Promlake does not have: no WAL to replay, no TSDB
// blocks, no administration.
type noTSDB struct{}

func (noTSDB) CleanTombstones() error                                         { return errNoTSDB }
func (noTSDB) Delete(context.Context, int64, int64, ...*labels.Matcher) error { return errNoTSDB }
func (noTSDB) Snapshot(string, bool) error                                    { return errNoTSDB }
func (noTSDB) Stats(string, int) (*tsdb.Stats, error)                         { return nil, errNoTSDB }
func (noTSDB) WALReplayStatus() (tsdb.WALReplayStatus, error)                 { return tsdb.WALReplayStatus{}, nil }
func (noTSDB) BlockMetas() ([]tsdb.BlockMeta, error)                          { return []tsdb.BlockMeta{}, nil }
