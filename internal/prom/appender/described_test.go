package appender

import (
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
)

// TestDescribed: a transaction has the listed metadata if it has a new series, or is the first of a
// period for its last series.
func TestDescribed(t *testing.T) {
	var last *Transaction
	a := New(func(tx *Transaction) error { last = tx; return nil })
	all := []segment.Metadata{{Metric: "a", Type: "gauge", Help: "A."}, {Metric: "none"}, {Metric: "b_total", Type: "counter", Unit: "seconds"}}
	list := func(add func(string, metadata.Metadata)) {
		for _, m := range all {
			add(m.Metric, metadata.Metadata{Type: model.MetricType(m.Type), Help: m.Help, Unit: m.Unit})
		}
	}
	described := func(at int64, series ...string) (got []segment.Metadata) {
		app := a.Described(list)
		for _, name := range series {
			_, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, name), 0, at, 1, nil, nil, storage.AOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, app.Commit())
		for _, f := range last.Metadata {
			got = append(got, f.Metadata)
		}
		return got
	}
	want := []segment.Metadata{all[0], all[2]}
	require.Equal(t, want, described(300_000, "a", "up"), "new series")
	require.Empty(t, described(315_000, "a", "up"))
	require.Empty(t, described(599_999, "up"))
	require.Equal(t, want, described(600_000, "a", "up"), "another period")
	require.Empty(t, described(615_000, "a", "up"))
	require.Equal(t, want, described(630_000, "a", "b_total", "up"), "a new series between others")
	all[0].Help = "A is new."
	want[0] = all[0]
	require.Empty(t, described(645_000, "a", "b_total", "up"))
	require.Equal(t, want, described(900_000, "a", "b_total", "up"), "a text that changed")

	app := a.Described(list)
	_, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "rolled_back"), 0, 3_600_000*25, 1, nil, nil, storage.AOptions{})
	require.NoError(t, err)
	last = nil
	require.NoError(t, app.Rollback())
	require.Nil(t, last)
}

// TestLongDescriptions: long texts take bounded memory between scrapes.
func TestLongDescriptions(t *testing.T) {
	var f families
	help := strings.Repeat("x", maxFamilyBytes/4)
	for i := range 20 {
		f.of(&segment.Metadata{Metric: strconv.Itoa(i), Help: help})
		require.LessOrEqual(t, len(f.byName), 4)
	}
	require.NotEmpty(t, f.byName)
}
