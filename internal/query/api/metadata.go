package api

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/metadata"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// noLimit is the value of an absent limit parameter, as in upstream.
const noLimit = -1

// metadata answers /api/v1/metadata from the backend. Under a limit it returns the first families
// by name, and the first entries by type, unit and help; upstream's choice is random.
func (s *server) metadata(r *http.Request) (any, error) {
	limit, err := intParam(r, "limit")
	if err != nil {
		return nil, err
	}
	perMetric, err := intParam(r, "limit_per_metric")
	if err != nil {
		return nil, err
	}
	all, err := s.backend.Metadata(r.Context(), r.FormValue("metric"))
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(all))
	if limit >= 0 && len(names) > limit {
		names = names[:limit]
	}
	res := make(map[string][]metadata.Metadata, len(names))
	for _, name := range names {
		entries := slices.Clone(all[name])
		slices.SortFunc(entries, func(a, b metadata.Metadata) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Help, b.Help))
		})
		entries = slices.Compact(entries)
		if perMetric > 0 && len(entries) > perMetric {
			entries = entries[:perMetric]
		}
		res[name] = entries
	}
	return res, nil
}

// intParam parses an integer parameter; it returns noLimit if the parameter is absent.
func intParam(r *http.Request, name string) (int, error) {
	v := r.FormValue(name)
	if v == "" {
		return noLimit, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, respond.BadRequest(name + " must be a number")
	}
	return n, nil
}
