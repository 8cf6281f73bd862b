package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/prom/timeparam"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Preview is the answer to a dry run.
type Preview struct {
	Series  int64 `json:"series"`
	Samples int64 `json:"samples"` // as stored: one that lies in several objects counts as often
	Bytes   int64 `json:"bytes"`   // the samples' share of their objects' bytes
}

// deleteSeries adds a tombstone for every match[], from start to end. All of them take effect in
// one commit. With dry_run it only counts.
func (a *api) deleteSeries(r *http.Request) (any, error) {
	selectors := r.Form["match[]"]
	if len(selectors) == 0 {
		return nil, badData(errors.New("no match[] parameter provided"))
	}
	if n := int64(len(selectors)); n > a.settings.MaxSelectors {
		return nil, badData(&requestLimit{limitSelectors, "selectors (match[])", n, a.settings.MaxSelectors, "--web.max-delete-selectors"})
	}
	if err := a.settings.Expressions.Check(selectors...); err != nil {
		return nil, badData(err)
	}
	mint, err := timeOf(r, "start", key.MinTime)
	if err != nil {
		return nil, err
	}
	maxt, err := timeOf(r, "end", key.MaxTime)
	if err != nil {
		return nil, err
	}
	if maxt < mint {
		return nil, invalid("end", errors.New("end timestamp must not be before start timestamp"))
	}
	dryRun := false
	if v := r.Form.Get("dry_run"); v != "" {
		if dryRun, err = strconv.ParseBool(v); err != nil {
			return nil, invalid("dry_run", fmt.Errorf("cannot parse %q to a valid boolean", v))
		}
	}
	var sets [][]*labels.Matcher // by match[]
	for _, s := range selectors {
		ms, err := a.parser.ParseMetricSelector(s)
		if err != nil {
			return nil, invalid("match[]", err)
		}
		if len(ms) == 0 {
			return nil, invalid("match[]", errors.New("match[] must contain at least one matcher"))
		}
		sets = append(sets, ms)
	}
	ctx := r.Context()
	if dryRun {
		series, samples, bytes, err := a.counter.Count(ctx, sets, mint, maxt)
		if err != nil {
			return nil, fmt.Errorf("count what would be deleted: %w", err)
		}
		return Preview{series, samples, bytes}, nil
	}
	remove := catalog.Deletion{MinT: mint, MaxT: maxt, Queued: a.settings.Queued}
	for _, ms := range sets {
		remove.Sets = append(remove.Sets, catalog.MatchersOf(ms))
	}
	m, err := catalog.Delete(ctx, a.store, tenant.From(ctx), remove)
	if err != nil {
		return nil, fmt.Errorf("delete series: %w", err)
	}
	a.logger.Info("series deleted", "tenant", tenant.From(ctx), "match", selectors, "mint", mint, "maxt", maxt, "manifest", m.ID)
	return nil, nil
}

// timeOf reads a time parameter as ms, within what keys can name.
func timeOf(r *http.Request, name string, absent int64) (int64, error) {
	v := r.Form.Get(name)
	if v == "" {
		return absent, nil
	}
	t, err := timeparam.Parse(v)
	if err != nil {
		return 0, invalid(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
	}
	return min(max(t.UnixMilli(), key.MinTime), key.MaxTime), nil
}

// invalid is upstream's answer to a parameter that it cannot read.
func invalid(name string, err error) error {
	return badData(fmt.Errorf("invalid parameter %q: %w", name, err))
}
