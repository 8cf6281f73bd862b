package index

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestFilters: what a stored filter excludes, the table excludes as well, and it excludes nearly
// all selectors of values that the table does not have. The filter knows no labels of the MAP.
func TestFilters(t *testing.T) {
	var rows []segment.Row
	for i := range 500 {
		rows = append(rows, segment.Row{
			Labels: labels.FromStrings(model.MetricNameLabel, fmt.Sprintf("m%03d", i), "odd", fmt.Sprint(i%2), "value", fmt.Sprint(2*i), "Map", fmt.Sprint(2*i)),
			Floats: []segment.Float{{T: 1, V: 1}},
		})
	}
	b, encoded, err := segmenttest.Encode(rows, nil)
	require.NoError(t, err)
	table, err := LoadSegment(bytes.NewReader(b), int64(len(b)), 1, nil)
	require.NoError(t, err)
	info := &encoded
	matchers := func(i int) []*labels.Matcher {
		v := fmt.Sprint(i)
		return []*labels.Matcher{
			labels.MustNewMatcher(labels.MatchEqual, "value", v),
			labels.MustNewMatcher(labels.MatchEqual, "absent", v),
			labels.MustNewMatcher(labels.MatchEqual, "absent", ""),
			labels.MustNewMatcher(labels.MatchNotEqual, "value", v),
			labels.MustNewMatcher(labels.MatchRegexp, "value", v+"|x"),
			labels.MustNewMatcher(labels.MatchRegexp, "value", v+"|"),
			labels.MustNewMatcher(labels.MatchRegexp, "value", v+".*"),
			labels.MustNewMatcher(labels.MatchNotRegexp, "value", v+"|x"),
			labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, fmt.Sprintf("m%03d", i)),
			labels.MustNewMatcher(labels.MatchEqual, "Map", v),
		}
	}
	none, unfiltered := 0, 0
	for i := range 1000 {
		for _, m := range matchers(i) {
			for _, sets := range [][][]*labels.Matcher{
				{{m}},
				{{m, labels.MustNewMatcher(labels.MatchEqual, "odd", "1")}},
				{{labels.MustNewMatcher(labels.MatchEqual, "odd", "2")}, {m}},
			} {
				found, only := 0, true
				wanted := make([]Wanted, len(sets))
				for k, ms := range sets {
					selected, err := table.Select(t.Context(), ms)
					require.NoError(t, err)
					found += count(selected)
					wanted[k] = WantedBy(ms)
					only = only && len(wanted[k]) == len(ms)
				}
				filtered := Footers{info}.Exclude(wanted)[0]
				switch {
				case found > 0:
					require.False(t, filtered, "%v", sets)
				case only && len(sets[0]) == 1: // a row with the values of all matchers would match
					none++
					if !filtered && m.Name != "Map" {
						unfiltered++
					}
					require.False(t, filtered && m.Name == "Map", "%v", sets)
				}
			}
		}
	}
	require.Greater(t, none, 3000)
	require.Less(t, unfiltered, none/50)
	require.Equal(t, []bool{false}, Footers{{}}.Exclude([]Wanted{WantedBy(matchers(1))}), "a segment without a filter")
	other := []Wanted{WantedBy([]*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "absent", "x")})}
	require.Equal(t, []bool{false, true, false}, Footers{{}, info, {}}.Exclude(other))
	require.Equal(t, []bool{false}, Footers{info}.Exclude(nil), "no lists match everything")
}
