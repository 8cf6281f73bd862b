package query_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSamplesOfBlocksAreKept removes the sample file of a block: a selector that has read it has
// its samples nevertheless, also in another window and in an expression, with their start
// timestamps and without what was deleted since.
func TestSamplesOfBlocksAreKept(t *testing.T) {
	store := laketest.NewDir(t)
	settings := query.Settings{UseStartTimestamps: true}
	l, again := laketest.New(t, store, settings), laketest.New(t, store, settings)
	var rows []segment.Row
	for i := range 3 {
		r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i))}
		for j := range 100 {
			r.Floats = append(r.Floats, segment.Float{T: int64(j) * 1000, V: float64(i*j) / 7, ST: int64(j/50)*50_000 + 1})
		}
		rows = append(rows, r)
	}
	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, rows)[0]
	one := []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", "2")}
	selected := func(l *laketest.Lake, mint, maxt int64, ms []*labels.Matcher) storage.SeriesSet {
		q, err := l.Querier(mint, maxt)
		require.NoError(t, err)
		return q.Select(query.WithSince(t.Context(), laketest.Now().Add(time.Second)), true, nil, ms...)
	}
	read := func(l *laketest.Lake, mint, maxt int64) []string { return text(t, selected(l, mint, maxt, one)) }
	fails := func(l *laketest.Lake, mint, maxt int64, ms []*labels.Matcher) {
		set := selected(l, mint, maxt, ms)
		require.False(t, set.Next())
		require.Error(t, set.Err())
	}
	expression := func(l *laketest.Lake) string {
		return l.Exec(t.Context(), laketest.Query{Text: `rate(m{i="2"}[30s])`, End: time.UnixMilli(95_000)}).String()
	}
	rate := expression(again)
	narrow, all := read(again, 30_500, 75_000), read(l, 0, 200_000)
	require.Len(t, all, 1)

	require.NoError(t, store.Delete(t.Context(), b.Key(tenant.Default).File(block.SamplesFile(0))))
	require.Equal(t, all, read(l, 0, 200_000))
	require.Equal(t, narrow, read(l, 30_500, 75_000))
	require.Equal(t, rate, expression(l))
	fails(l, 0, 200_000, []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", "1")}) // nobody has read them
	fails(again, 80_000, 90_000, one)                                                                             // most samples were not in the windows that it read

	l.Delete(tenant.Default, one, 40_000, 60_000)
	got := read(l, 38_500, 61_500)
	require.Len(t, got, 1)
	require.Len(t, strings.Fields(got[0]), 2+2, got)
}

// TestRowGroupsAreKept: once many selectors have read rows of a row group, all of it is kept, with
// start timestamps and times of each series or without and with times that most series share.
func TestRowGroupsAreKept(t *testing.T) {
	const series, readers = 20, 17
	for _, apart := range []bool{true, false} {
		store := laketest.NewDir(t)
		var rows []segment.Row
		for i := range series {
			r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprintf("%02d", i))}
			for j := range 50 {
				f := segment.Float{T: int64(j)*1000 + int64(i%10/9), V: float64(i*j) / 7}
				if apart {
					f.T, f.ST = f.T+int64(i%3), int64(1+i%2)
				}
				r.Floats = append(r.Floats, f)
			}
			rows = append(rows, r)
		}
		l, other := laketest.New(t, store, query.Settings{UseStartTimestamps: true}), laketest.New(t, store, query.Settings{UseStartTimestamps: true})
		b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, rows)[0]
		read := func(l *laketest.Lake, mint, maxt int64, i int) []string {
			return query1(t, l, mint, maxt, nil, laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", fmt.Sprintf("%02d", i)))
		}
		want := query1(t, other, 10_500, 200_000, nil, laketest.Equal(model.MetricNameLabel, "m"))
		require.Len(t, want, series)
		part := query1(t, other, 20_500, 30_500, nil, laketest.Equal(model.MetricNameLabel, "m"))
		for i := range readers {
			require.Equal(t, want[i:i+1], read(l, 10_500, 200_000, i))
		}
		require.NoError(t, store.Delete(t.Context(), b.Key(tenant.Default).File(block.SamplesFile(0))))
		for i := range series {
			require.Equal(t, want[i:i+1], read(l, 10_500, 200_000, i))
			require.Equal(t, part[i:i+1], read(l, 20_500, 30_500, i))
		}
	}
}

// TestSamplesOfShortWindowsAreKept: what selectors read again and again in windows that are short
// beside the block is kept as well, for all of its windows.
func TestSamplesOfShortWindowsAreKept(t *testing.T) {
	store := laketest.NewDir(t)
	var rows []segment.Row
	for i := range 3 {
		r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i))}
		for j := range 100 {
			r.Floats = append(r.Floats, segment.Float{T: int64(j) * 1000, V: float64(i*j) / 7})
		}
		rows = append(rows, r)
	}
	l, other := laketest.New(t, store, query.Settings{}), laketest.New(t, store, query.Settings{})
	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, rows)[0]
	read := func(l *laketest.Lake, i, mint int64) []string {
		return query1(t, l, mint, mint+10_000, nil, laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", fmt.Sprint(i)))
	}
	for mint := range int64(3) {
		require.Len(t, read(l, 1, mint), 1)
	}
	want := read(other, 1, 60_500)
	require.NoError(t, store.Delete(t.Context(), b.Key(tenant.Default).File(block.SamplesFile(0))))
	require.Equal(t, want, read(l, 1, 60_500))
}

// TestDamagedRowGroup: samples that a read does not want may be damaged when it reads all of the
// row group.
func TestDamagedRowGroup(t *testing.T) {
	store := laketest.NewDir(t)
	var rows []segment.Row
	for i := range 40 {
		r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprintf("%02d", i))}
		for j := range 2000 {
			r.Floats = append(r.Floats, segment.Float{T: int64(j) * 1000, V: float64(i*j%97) / 7})
		}
		rows = append(rows, r)
	}
	l := laketest.New(t, store, query.Settings{})
	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)[0]
	read := func(i int) []string {
		return query1(t, l, 0, 10_000_000, nil, laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", fmt.Sprintf("%02d", i)))
	}
	damageColumn(t, store, b, 3) // the last page of values
	for i := range 30 {
		require.Len(t, read(i%18), 1)
	}
}
