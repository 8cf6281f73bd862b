package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// Monitoring is what a process scrapes and evaluates, and whom it notifies. The methods with a
// context return nil for tenants other than the one whose targets these are. All methods are safe
// for concurrent use.
type Monitoring interface {
	ScrapePools(ctx context.Context) v1.ScrapePoolsRetriever
	Targets(ctx context.Context) v1.TargetRetriever
	Alertmanagers(ctx context.Context) v1.AlertmanagerRetriever
	// Rules are those that the process evaluates for the tenant of ctx, whichever it is.
	Rules(ctx context.Context) v1.RulesRetriever
	// ExternalLabels are those of the configuration, for the same tenant only.
	ExternalLabels(ctx context.Context) labels.Labels
	// ConfigYAML is Prometheus' configuration file; "" if there is none.
	ConfigYAML() string
	// Reloaded reports whether the last attempt to read the configuration succeeded, and when one
	// succeeded last.
	Reloaded() (ok bool, last time.Time)
}

// externalLabels are those with which other servers see the series that a request reads, unless a
// series has labels of these names.
func (s *server) externalLabels(ctx context.Context) labels.Labels {
	if s.settings.Monitoring == nil {
		return labels.EmptyLabels()
	}
	return s.settings.Monitoring.ExternalLabels(ctx)
}

// shown returns what upstream's API asks of m: what get returns. Where m has nothing, it answers as
// a Prometheus without a configuration, which is instead.
func shown[T comparable](m Monitoring, get func(Monitoring, context.Context) T, instead T) func(context.Context) T {
	var none T
	return func(ctx context.Context) T {
		if m != nil {
			if v := get(m, ctx); v != none {
				return v
			}
		}
		return instead
	}
}

// rules answers /rules from the groups of the settings, as upstream's handler does from its own.
func (s *server) rules(r *http.Request) (any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, respond.BadRequest(fmt.Sprintf("error parsing form values: %s", err))
	}
	invalid := func(param, why string) (any, error) {
		return nil, respond.BadRequest(fmt.Sprintf("invalid parameter %q: %s", param, why))
	}
	sets, err := s.parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return nil, respond.BadRequest(err.Error())
	}
	for _, ms := range sets {
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return nil, respond.BadRequest("match[] must contain at least one non-empty matcher")
		}
	}
	for _, values := range r.Form {
		slices.Sort(values)
	}
	chooses := func(param, value string) bool {
		_, found := slices.BinarySearch(r.Form[param], value)
		return found || len(r.Form[param]) == 0
	}
	query := r.URL.Query()
	kind := strings.ToLower(query.Get("type"))
	if kind != "" && kind != "alert" && kind != "record" {
		return invalid("type", fmt.Sprintf("not supported value %q", kind))
	}
	exclude, err := strconv.ParseBool(cmp.Or(strings.ToLower(query.Get("exclude_alerts")), "false"))
	if err != nil {
		return invalid("exclude_alerts", "error converting exclude_alerts: "+err.Error())
	}
	token := query.Get("group_next_token")
	if token != "" && query.Get("group_limit") == "" {
		return invalid("group_next_token", "group_limit needs to be present in order to paginate over the groups")
	}
	limit, err := strconv.ParseInt(cmp.Or(query.Get("group_limit"), strconv.Itoa(math.MaxInt32)), 10, 32)
	switch {
	case err != nil:
		return invalid("group_limit", "group_limit needs to be a valid number: "+err.Error())
	case limit <= 0:
		return invalid("group_limit", "group_limit needs to be greater than 0")
	}
	groups, err := s.settings.Rules(r.Context())
	if err != nil {
		return nil, err
	}
	out, begun := &v1.RuleDiscovery{RuleGroups: []*v1.RuleGroup{}}, token == ""
	for _, g := range groups {
		hash := sha256.Sum256([]byte(g.File + ";" + g.Name))
		own := hex.EncodeToString(hash[:])
		if begun = begun || own == token; !begun || !chooses("rule_group[]", g.Name) || !chooses("file[]", g.File) {
			continue
		}
		all := g.Rules
		g.Rules = []v1.Rule{}
		for _, rule := range all {
			var name, is string
			var ls labels.Labels
			switch one := rule.(type) {
			case v1.AlertingRule:
				if name, is, ls = one.Name, "alert", one.Labels; exclude {
					one.Alerts = nil
					rule = one
				}
			case v1.RecordingRule:
				name, is, ls = one.Name, "record", one.Labels
			}
			selects := func(ms []*labels.Matcher) bool {
				return !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(ls.Get(m.Name)) })
			}
			if cmp.Or(kind, is) == is && chooses("rule_name[]", name) && (len(sets) == 0 || slices.ContainsFunc(sets, selects)) {
				g.Rules = append(g.Rules, rule)
			}
		}
		if len(g.Rules) > 0 && len(out.RuleGroups) == int(limit) {
			out.GroupNextToken = own
			break
		}
		if len(g.Rules) > 0 {
			out.RuleGroups = append(out.RuleGroups, g)
		}
	}
	if !begun {
		return invalid("group_next_token", fmt.Sprintf("invalid group_next_token '%s'. were rule groups changed?", token))
	}
	return out, nil
}

// alerts answers /alerts, like rules: of each group those of firing rules first.
func (s *server) alerts(r *http.Request) (any, error) {
	groups, err := s.settings.Rules(r.Context())
	if err != nil {
		return nil, err
	}
	out := &v1.AlertDiscovery{Alerts: []*v1.Alert{}}
	for _, g := range groups {
		var all []v1.AlertingRule
		for _, rule := range g.Rules {
			if one, ok := rule.(v1.AlertingRule); ok {
				all = append(all, one)
			}
		}
		slices.SortStableFunc(all, func(a, b v1.AlertingRule) int { // "firing" < "pending", others have no alerts
			return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Name, b.Name))
		})
		for _, one := range all {
			out.Alerts = append(out.Alerts, one.Alerts...)
		}
	}
	return out, nil
}

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
