package segment_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// runsOf writes rows and returns the runs that a reader of the file finds, and the file's footer.
func runsOf(t *testing.T, rows []segment.Row, groupRows int) (segment.LabelRuns, segment.Info, map[string]string) {
	t.Helper()
	b, info, err := encodeInGroups(rows, nil, groupRows, 1<<20)
	require.NoError(t, err)
	c, err := segment.OpenColumns(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	defer c.Release()
	runs, err := segment.RunsOf(c.Layout.KeyValues, len(info.LabelColumns), info.Rows)
	require.NoError(t, err)
	return runs, info, c.Layout.KeyValues
}

// metricsOf returns n series of each of some metrics, with labels that the metrics have in turn.
func metricsOf(metrics, n, names int) (rows []segment.Row) {
	for m := range metrics {
		for i := range n {
			ls := labels.FromStrings(model.MetricNameLabel, fmt.Sprintf("m%05d", m), "i", fmt.Sprintf("%05d", i), fmt.Sprintf("l%03d", m%names), "x", "Zone", "y")
			rows = append(rows, segment.Row{Labels: ls, Floats: []segment.Float{{T: someTime, V: 1}}})
		}
	}
	return rows
}

// TestLabelRuns: the runs name the columns in which rows have values, whatever the row groups are.
func TestLabelRuns(t *testing.T) {
	rows := metricsOf(300, 20, 140)
	for _, groupRows := range []int{32 << 10, 1000} {
		runs, info, _ := runsOf(t, rows, groupRows)
		require.Len(t, runs, 300)
		require.Len(t, info.LabelColumns, 141)
		for _, wanted := range [][]uint32{{0}, {19, 20}, {5999}, {100, 2800, 2801}, every(6000, 1), every(6000, 777)} {
			var want []string
			for _, row := range wanted {
				rows[row].Labels.Range(func(l labels.Label) {
					if segment.HasColumn(l.Name) && l.Name != model.MetricNameLabel {
						want = append(want, l.Name)
					}
				})
			}
			slices.Sort(want)
			var got []string
			have := runs.Columns(wanted)
			for i, name := range info.LabelColumns {
				if have.Has(i) {
					got = append(got, name)
				}
			}
			require.Equal(t, slices.Compact(want), got, "rows %d", wanted)
		}
	}
}

// TestLabelRunsAreFew: small segments have no runs, and those whose runs would be many.
func TestLabelRunsAreFew(t *testing.T) {
	none, _, _ := runsOf(t, metricsOf(10, 409, 3), 32<<10)
	require.Nil(t, none, "4,090 rows")
	none, _, _ = runsOf(t, metricsOf(1025, 4, 2), 32<<10)
	require.Nil(t, none, "1,025 runs")
	one, _, _ := runsOf(t, metricsOf(1025, 4, 1), 32<<10)
	require.Len(t, one, 1)
	many, _, _ := runsOf(t, metricsOf(1024, 4, 2), 32<<10)
	require.Len(t, many, 1024)
}

// TestLabelRunsOfRepeats: a segment whose rows came before has the same runs.
func TestLabelRunsOfRepeats(t *testing.T) {
	w, err := segment.NewWriter()
	require.NoError(t, err)
	b, err := segmenttest.Batch(metricsOf(10, 500, 3), nil)
	require.NoError(t, err)
	first, _, err := w.Write(b, nil)
	require.NoError(t, err)
	first = slices.Clone(first)
	var repeats segment.Repeats
	for range 3 {
		again, _, err := w.Write(b, &repeats)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

// TestDamagedLabelRuns: runs that do not cover all rows, or name sets that are not there, are refused.
func TestDamagedLabelRuns(t *testing.T) {
	const key = "promlake.segment.labels"
	_, info, kv := runsOf(t, metricsOf(10, 500, 3), 32<<10)
	columns := len(info.LabelColumns)
	_, err := segment.RunsOf(kv, columns, info.Rows)
	require.NoError(t, err)
	for _, rows := range []int64{info.Rows - 1, info.Rows + 1} {
		_, err = segment.RunsOf(kv, columns, rows)
		require.ErrorIs(t, err, segment.ErrFormat)
	}
	text, err := base64.RawStdEncoding.DecodeString(kv[key])
	require.NoError(t, err)
	for n := range text {
		_, err = segment.RunsOf(map[string]string{key: base64.RawStdEncoding.EncodeToString(text[:n])}, columns, info.Rows)
		require.ErrorIs(t, err, segment.ErrFormat, "%d bytes", n)
	}
	for _, b := range []string{"!", base64.RawStdEncoding.EncodeToString([]byte{1, 7, 0x88, 0x27, 1}), base64.RawStdEncoding.EncodeToString([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})} {
		_, err = segment.RunsOf(map[string]string{key: b}, columns, info.Rows)
		require.ErrorIs(t, err, segment.ErrFormat)
	}
	runs, err := segment.RunsOf(nil, columns, info.Rows)
	require.NoError(t, err)
	require.Nil(t, runs)
}
