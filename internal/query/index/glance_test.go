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

func glanced(t *testing.T, rows []segment.Row) (*Table, *Glance, *segment.Info) {
	t.Helper()
	b, info, err := segmenttest.Encode(rows, nil)
	require.NoError(t, err)
	table, err := LoadSegment(bytes.NewReader(b), int64(len(b)), 1, nil)
	require.NoError(t, err)
	return table, table.Glance(), &info
}

// TestGlance: what a glance or a stored filter excludes, the table excludes as well, and both exclude
// nearly all selectors of values that the table does not have. The filter knows no labels of the MAP.
func TestGlance(t *testing.T) {
	var rows []segment.Row
	for i := range 500 {
		rows = append(rows, segment.Row{
			Labels: labels.FromStrings(model.MetricNameLabel, fmt.Sprintf("m%03d", i), "odd", fmt.Sprint(i%2), "value", fmt.Sprint(2*i), "Map", fmt.Sprint(2*i)),
			Floats: []segment.Float{{T: 1, V: 1}},
		})
	}
	table, g, info := glanced(t, rows)
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
	missed, none, unfiltered := 0, 0, 0
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
				switch excluded := g.Excludes(wanted); {
				case found > 0:
					require.False(t, excluded || filtered, "%v", sets)
				case only && len(sets[0]) == 1: // a row with the values of all matchers would match
					none++
					if !excluded {
						missed++
					}
					if !filtered && m.Name != "Map" {
						unfiltered++
					}
					require.False(t, filtered && m.Name == "Map", "%v", sets)
				}
			}
		}
	}
	require.Greater(t, none, 3000)
	require.Less(t, missed, none/100)
	require.Less(t, unfiltered, none/50)
	require.Equal(t, []bool{false}, Footers{{}}.Exclude([]Wanted{WantedBy(matchers(1))}), "a segment without a filter")
	other := []Wanted{WantedBy([]*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "absent", "x")})}
	require.Equal(t, []bool{false, true, false}, Footers{{}, info, {}}.Exclude(other))
	require.Equal(t, []bool{false}, Footers{info}.Exclude(nil), "no lists match everything")
}

func TestGlanceOfFewAndMany(t *testing.T) {
	_, g, _ := glanced(t, []segment.Row{{Labels: labels.FromStrings("a", "b"), Floats: []segment.Float{{T: 1, V: 1}}}})
	wanted := func(name, value string) []Wanted {
		return []Wanted{WantedBy([]*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, name, value)})}
	}
	require.False(t, g.Excludes(wanted("a", "b")))
	require.True(t, g.Excludes(wanted("a", "c")))
	require.False(t, g.Excludes(nil), "no lists match everything")
	require.False(t, (*Glance)(nil).Excludes(wanted("a", "c")))

	var rows []segment.Row
	for i := range maxGlance + 1 {
		rows = append(rows, segment.Row{Labels: labels.FromStrings("a", fmt.Sprintf("%06d", i)), Floats: []segment.Float{{T: 1, V: 1}}})
	}
	_, g, _ = glanced(t, rows[:maxGlance])
	require.NotNil(t, g)
	for i := range maxGlance {
		require.False(t, g.Excludes(wanted("a", fmt.Sprintf("%06d", i))))
	}
	_, g, _ = glanced(t, rows)
	require.Nil(t, g)
}
