package index_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestScrapedTable: a table whose rows have one sample each, as after a scrape, takes less memory and
// knows the same.
func TestScrapedTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rows := randomRows(rng, 300)
	for i := range rows {
		rows[i].Floats, rows[i].Hists, rows[i].Exemplars = []segment.Float{{T: rng.Int64N(1000)}}, nil, nil
	}
	table, _ := asSegment(t, rows)
	require.EqualValues(t, len(rows), table.TotalFloats())
	require.Zero(t, table.TotalHists())
	byLabels := map[string]int64{}
	for i := range rows {
		byLabels[rows[i].Labels.String()] = rows[i].Floats[0].T
	}
	r := table.NewReader()
	for i := range table.Rows() {
		first, n := table.Floats(i)
		require.Equal(t, []int64{int64(i), 1}, []int64{first, n})
		at := byLabels[r.Labels(i).String()]
		mint, maxt := table.Times(i)
		require.Equal(t, []int64{at, at}, []int64{mint, maxt})
	}
	batch, err := segmenttest.Batch(rows, nil)
	require.NoError(t, err)
	file, _, err := segmenttest.Encode(rows, nil)
	require.NoError(t, err)
	known, err := index.LoadSegment(bytes.NewReader(file), int64(len(file)), seed, recent.New(1<<20, nil, time.Now).Of(batch, recent.NewLabels(batch.View)))
	require.NoError(t, err)
	require.Greater(t, table.Bytes(), known.Bytes()+int64(7*len(rows)))
	require.Equal(t, table.Rows(), known.Rows())
	require.Equal(t, table.TotalFloats(), known.TotalFloats())
	again := known.NewReader()
	for i := range table.Rows() {
		require.Equal(t, r.Labels(i), again.Labels(i))
		require.Equal(t, table.Key(i), known.Key(i))
		_, stored := known.ID(i)
		require.False(t, stored)
		mint, maxt := table.Times(i)
		from, upto := known.Times(i)
		require.Equal(t, []int64{mint, maxt}, []int64{from, upto})
		first, n := known.Floats(i)
		require.Equal(t, []int64{int64(i), 1}, []int64{first, n})
	}
	rows[0].Floats = append(rows[0].Floats, segment.Float{T: 2000})
	other, _ := asSegment(t, rows)
	require.Greater(t, other.Bytes(), table.Bytes()+int64(11*len(rows)))
}

// TestTwins: tables of the same series share their labels, others do not, and each knows the same as
// before.
func TestTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var twins index.Twins
	rows := randomRows(rng, 200)
	first, _ := asSegment(t, rows)
	require.False(t, twins.Share(first))
	fewer, _ := asSegment(t, rows[1:])
	require.False(t, twins.Share(fewer))
	for i := range rows {
		rows[i].Floats = []segment.Float{{T: 10}, {T: int64(20 + i)}}
	}
	second, _ := asSegment(t, rows)
	plain, _ := asSegment(t, rows)
	require.True(t, twins.Share(second))
	require.Equal(t, plain, second)
	for _, m := range []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchRegexp, "job", "[01]"), labels.MustNewMatcher(labels.MatchEqual, "Zone", ""),
	} {
		want, err := plain.Select(t.Context(), []*labels.Matcher{m})
		require.NoError(t, err)
		got, err := second.Select(t.Context(), []*labels.Matcher{m})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, first.Rows(), fewer.Rows()+1)

	for i := range rows {
		rows[i].Labels = labels.NewBuilder(rows[i].Labels).Set("other", "label").Labels()
	}
	collided, _ := asSegment(t, rows)
	index.TakeIDs(collided, first)
	require.False(t, twins.Share(collided), "other series with the same ids")
	runtime.KeepAlive(first)
}
