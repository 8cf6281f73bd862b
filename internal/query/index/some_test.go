package index_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// manyRows returns more series than fit into one row group of a segment.
func manyRows() []segment.Row {
	rows := make([]segment.Row, 33_000)
	for i := range rows {
		rows[i].Labels = labels.FromStrings("__name__", fmt.Sprintf("m%d", i%3), "n", fmt.Sprint(i%100), "Id", fmt.Sprint(i), fmt.Sprintf("only%d", i%3), "1")
		rows[i].Floats = []segment.Float{{T: int64(i), V: 1}}
	}
	return rows
}

// TestSome: a table of the rows that match says of them what the whole table says.
func TestSome(t *testing.T) {
	patterns := []string{"", ".*", ".+", "1", "1.*", "(1|2|30)", ".*1", "m1.*", "m(1|2|3)", "[^1]*", "1|", "nothing"}
	for _, o := range objects {
		t.Run(o.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 5))
			for _, tc := range []struct {
				rows  []segment.Row
				times int
			}{{randomRows(rng, 1200), 400}, {manyRows(), 3}} {
				whole, some := o.load(t, tc.rows)
				names := append([]string{"absent"}, whole.Names()...)
				for range tc.times {
					sets := make([][]*labels.Matcher, 1+rng.IntN(2))
					var want []index.Range
					for k := range sets {
						for range rng.IntN(4) {
							sets[k] = append(sets[k], labels.MustNewMatcher(labels.MatchType(rng.IntN(4)), names[rng.IntN(len(names))], patterns[rng.IntN(len(patterns))]))
						}
						rows, err := whole.Select(t.Context(), sets[k])
						require.NoError(t, err)
						want = index.Union(want, rows)
					}
					got, err := some(t.Context(), index.Some{Seed: seed, Sets: sets, Most: math.MaxInt})
					require.NoError(t, err)
					require.True(t, got.Partial())
					require.Equal(t, want, got.KnownRows(), "%s", sets)
					compareSome(t, o.name == "segment", whole, got, want)
				}
			}
		})
	}
}

// TestKnown: a table of some rows of a segment in memory says what the table of these rows of its
// object says.
func TestKnown(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	rows := randomRows(rng, 1200)
	require.False(t, scraped(t, rows))
	for i := range rows {
		rows[i].Floats, rows[i].Hists, rows[i].Exemplars = []segment.Float{{T: rng.Int64N(1000), V: rng.Float64()}}, nil, nil
	}
	require.True(t, scraped(t, rows))
	whole, some := asSegment(t, rows)
	known := keptOf(t, rows)
	names, patterns := append([]string{"absent"}, whole.Names()...), []string{"", ".*", ".+", "1", "1.*", "(1|2|30)", "m1.*", "m1", "[^1]*", "1|", "nothing"}
	for range 1000 {
		sets := make([][]*labels.Matcher, 1+rng.IntN(2))
		for k := range sets {
			for range rng.IntN(4) {
				sets[k] = append(sets[k], labels.MustNewMatcher(labels.MatchType(rng.IntN(4)), names[rng.IntN(len(names))], patterns[rng.IntN(len(patterns))]))
			}
		}
		s := index.Some{Seed: seed, Sets: sets, Most: 1 + rng.IntN(1200)}
		want, err := some(t.Context(), s)
		require.NoError(t, err)
		got, ok, err := s.Known(t.Context(), known)
		require.NoError(t, err)
		require.True(t, ok)
		if want == nil {
			require.Nil(t, got, "%s", sets)
			continue
		}
		require.Equal(t, want.KnownRows(), got.KnownRows(), "%s", sets)
		require.Equal(t, want.RowsKey(), got.RowsKey())
		compareSome(t, true, whole, got, got.KnownRows())
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, _, err := index.Some{Seed: seed, Sets: [][]*labels.Matcher{{labels.MustNewMatcher(labels.MatchRegexp, "n", "1.*")}}, Most: 100}.Known(ended, known)
	require.ErrorIs(t, err, context.Canceled)
}

// keptOf returns the content of a segment in memory.
func keptOf(t *testing.T, rows []segment.Row) *recent.Segment {
	b, err := segmenttest.Batch(rows, nil)
	require.NoError(t, err)
	known := recent.New(1<<20, nil, time.Now).Of(b, recent.NewLabels(b.View))
	require.NotNil(t, known)
	return known
}

// scraped reports whether rows are as after a scrape, so that tables of them can be made in memory.
func scraped(t *testing.T, rows []segment.Row) bool {
	_, ok, err := index.Some{Seed: seed, Most: 1}.Known(t.Context(), keptOf(t, rows))
	require.NoError(t, err)
	return ok
}

// said is what a table says of a row.
type said struct {
	labels                  string
	key                     index.Key
	floatsAt, floats, hists int64
}

func compareSome(t *testing.T, segment bool, whole, got *index.Table, rows []index.Range) {
	var wants, gots []said
	floats, hists := int64(0), int64(0)
	all, some := whole.NewReader(), got.NewReader()
	for _, r := range rows {
		for row := int(r.From); row < int(r.To); row++ {
			want, have := said{labels: all.Labels(row).String(), key: whole.Key(row)}, said{labels: some.Labels(row).String(), key: got.Key(row)}
			want.floatsAt, want.floats = whole.Floats(row)
			have.floatsAt, have.floats = got.Floats(row)
			if segment {
				want.floatsAt = floats
			}
			_, want.hists = whole.Hists(row)
			_, have.hists = got.Hists(row)
			if from, upto := got.Times(row); from <= upto { // the whole table counts exemplars too
				first, last := whole.Times(row)
				_, exemplars := whole.Exemplars(row)
				if from < first || upto > last || exemplars == 0 && (from != first || upto != last) {
					t.Fatalf("row %d has samples from %d to %d, and some from %d to %d", row, first, last, from, upto)
				}
			} else if want.floats+want.hists > 0 {
				t.Fatalf("row %d has no times", row)
			}
			floats, hists = floats+want.floats, hists+want.hists
			wants, gots = append(wants, want), append(gots, have)
		}
	}
	require.Equal(t, wants, gots)
	if segment {
		require.Equal(t, [2]int64{floats, hists}, [2]int64{got.TotalFloats(), got.TotalHists()})
	}
}

func TestSomeStops(t *testing.T) {
	for _, o := range objects {
		_, some := o.load(t, randomRows(rand.New(rand.NewPCG(1, 1)), 100))
		got, err := some(t.Context(), index.Some{Seed: seed, Sets: everything, Most: 99})
		require.NoError(t, err)
		require.Nil(t, got, "more rows match than wanted")
		got, err = some(t.Context(), index.Some{Seed: seed, Sets: everything, Most: 100})
		require.NoError(t, err)
		require.Equal(t, 100, got.Rows())
		bare := got.WithoutLabels()
		require.Less(t, bare.Bytes(), got.Bytes())
		ended, end := context.WithCancel(t.Context())
		end()
		_, err = some(ended, index.Some{Seed: seed, Sets: everything, Most: 100})
		require.ErrorIs(t, err, context.Canceled)
	}
}
