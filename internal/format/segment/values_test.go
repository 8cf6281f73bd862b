package segment_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// valuesOf writes rows and returns the filter that a reader of the file finds.
func valuesOf(t *testing.T, rows []segment.Row, groupRows int) segment.Values {
	t.Helper()
	b, written, err := encodeInGroups(rows, nil, groupRows, 1<<20)
	require.NoError(t, err)
	read, err := segment.ReadInfo(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, written.Values, read.Values)
	return read.Values
}

// hostRows returns a series of each of some hosts.
func hostRows(n int) (rows []segment.Row) {
	for i := range n {
		rows = append(rows, segment.Row{
			Labels: labels.FromStrings(model.MetricNameLabel, fmt.Sprintf("m%d", i%7), "host", fmt.Sprint(i), "Rack", fmt.Sprint(i)),
			Floats: []segment.Float{{T: someTime, V: 1}},
		})
	}
	return rows
}

// TestValues: the filter has every label of a column, and few others, whatever the number of row
// groups.
func TestValues(t *testing.T) {
	rows := hostRows(1000)
	one, several := valuesOf(t, rows, 1000), valuesOf(t, rows, 64)
	require.Equal(t, one, several)
	require.Len(t, one, ((1000+7)*16+7)/8)
	for _, r := range rows {
		for _, name := range []string{model.MetricNameLabel, "host"} {
			require.True(t, one.Has(segment.ValueHash(name, r.Labels.Get(name))), "%s of %s", name, r.Labels)
		}
	}
	found := 0
	for i := range 1000 {
		for _, name := range []string{model.MetricNameLabel, "Rack", "other"} {
			if one.Has(segment.ValueHash(name, fmt.Sprint(i))) {
				found++
			}
		}
	}
	require.Less(t, found, 15)
}

func TestValuesOfFewAndMany(t *testing.T) {
	empty, _, err := segmenttest.Encode(nil, goldenMetadata)
	require.NoError(t, err)
	info, err := segment.ReadInfo(bytes.NewReader(empty), int64(len(empty)))
	require.NoError(t, err)
	require.Nil(t, info.Values)
	require.True(t, info.Values.Has(segment.ValueHash("a", "b")), "the empty filter has every label")

	require.NotNil(t, valuesOf(t, hostRows(8<<10-7), 1<<20))
	require.Nil(t, valuesOf(t, hostRows(8<<10-6), 1<<20))
}

func TestBrokenValues(t *testing.T) {
	_, err := readInfo(keyValues(versionKey, "1", infoKey, "{}", "promlake.segment.values", "?"))
	require.ErrorIs(t, err, segment.ErrFormat)
	require.ErrorContains(t, err, "decode values")
}

// valueExample matches a row of the specification's table of hashes: name, value, hash.
var valueExample = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| `([0-9]{10,})` \\|$")

// TestSpecifiedValueHashes computes the hashes of the specification's examples.
func TestSpecifiedValueHashes(t *testing.T) {
	spec, err := os.ReadFile(goldenSpec)
	require.NoError(t, err)
	found := 0
	for _, r := range valueExample.FindAllStringSubmatch(string(spec), -1) {
		if r[1][0] == '{' {
			continue // an identifier
		}
		want, err := strconv.ParseUint(r[3], 10, 64)
		require.NoError(t, err)
		require.Equal(t, want, segment.ValueHash(r[1], r[2]), r[0])
		found++
	}
	require.Equal(t, 2, found)
}
