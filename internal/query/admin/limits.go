package admin

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Limits of a request, by their names in metrics. Those of a manifest are named by
// catalog.LimitError.
const (
	limitSelectors = "selectors"
	limitMatch     = "expression" // expression.Limits
)

// requestLimit is a request that exceeds a limit of its own.
type requestLimit struct {
	name     string
	what     string // is limited
	got, max int64
	flag     string // changes the limit
}

func (e *requestLimit) Error() string {
	return fmt.Sprintf("%d %s, the limit is %d (%s): send several requests", e.got, e.what, e.max, e.flag)
}

// within checks the selectors of a request before they are parsed.
func (s Settings) within(selectors []string) error {
	if n := int64(len(selectors)); n > s.MaxSelectors {
		return &requestLimit{limitSelectors, "selectors (match[])", n, s.MaxSelectors, "--web.max-delete-selectors"}
	}
	return s.Expressions.Check(selectors...)
}

// newLimited counts the deletions that a limit refused.
func newLimited(reg prometheus.Registerer) *prometheus.CounterVec {
	c := telemetry.Registered(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promlake_admin_limited_total",
		Help: "Deletions that were refused because of a limit: selectors and expression of a request, matcher_bytes of a deletion, tombstones, tombstone_bytes and sealed of a manifest.",
	}, []string{"limit"}))
	for _, name := range []string{limitSelectors, limitMatch, "matcher_bytes", "tombstones", "tombstone_bytes", "sealed"} {
		c.WithLabelValues(name) // series exist from the start, so that rates see the first refusal
	}
	return c
}

// count counts err if it is a limit's.
func (a *api) count(err error) {
	var (
		request *requestLimit
		match   *expression.Error
		full    *catalog.LimitError
	)
	switch {
	case errors.As(err, &request):
		a.limited.WithLabelValues(request.name).Inc()
	case errors.As(err, &match):
		a.limited.WithLabelValues(limitMatch).Inc()
	case errors.As(err, &full):
		a.limited.WithLabelValues(full.Limit).Inc()
	}
}
