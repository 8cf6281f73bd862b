package appender

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// TestCollectsIntoGenerations collects transactions of the same series, some of them again and
// again, into generations that have different references for them, and of which one drops a series:
// each sample is of its series.
func TestCollectsIntoGenerations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var last *Transaction
	a := New(func(tx *Transaction) error { last = tx; return nil })
	var generations []*remotewrite.Generation
	for i := range uint64(3) {
		generations = append(generations, remotewrite.NewGeneration(i))
	}
	drop := []*relabel.Config{{SourceLabels: model.LabelNames{"i"}, Regex: relabel.MustNewRegexp("3"), Action: relabel.Drop, NameValidationScheme: model.UTF8Validation}}
	extra := []series.Label{{Name: "extra", Value: "1"}}
	for now := range int64(200) {
		app := a.AppenderV2(t.Context())
		var want []string
		for _, i := range rng.Perm(8)[:1+rng.IntN(8)] {
			ls := labels.FromStrings(model.MetricNameLabel, "m", "i", fmt.Sprint(i))
			_, err := app.Append(storage.SeriesRef(rng.IntN(10)), ls, 0, now, float64(i), nil, nil, storage.AOptions{})
			require.NoError(t, err)
			want = append(want, ls.String())
		}
		require.NoError(t, app.Commit())
		for range 1 + rng.IntN(2) { // as if the first attempt had failed
			rules := remotewritetest.Rules()
			if rng.IntN(3) == 0 {
				rules.Labels = extra
			}
			n, want := rng.IntN(len(generations)), append([]string{}, want...)
			g := generations[n]
			if n == 2 {
				rules.Relabel = drop
				want = slices.DeleteFunc(want, func(ls string) bool { return strings.Contains(ls, `i="3"`) })
			}
			b, err := remotewrite.Collect(g, rules, remotewrite.NewRoom(1<<20, 1<<20, 1<<20, nil), Collect([]*Transaction{last}))
			require.NoError(t, err)
			view, got := g.Table.View(), []string{}
			for _, f := range b.Floats {
				ls := labels.NewScratchBuilder(3)
				ls.Add(model.MetricNameLabel, view.Metrics[view.Metric(f.Ref)])
				for _, p := range view.Pairs(f.Ref) {
					name, value := view.Names[p.Name], view.Values[p.Name][p.Value]
					if name == "extra" {
						require.Equal(t, extra, rules.Labels)
						continue
					}
					ls.Add(name, value)
					require.Equal(t, fmt.Sprint(f.V), value)
				}
				require.Equal(t, len(rules.Labels)+1, len(view.Pairs(f.Ref)))
				ls.Sort()
				got = append(got, ls.Labels().String())
			}
			require.Equal(t, want, got)
			b.Release()
		}
		last.Release()
	}
}

// TestDescribesUntilDurable: metadata is in each batch of a generation until that has noted it, and
// again once another description of the family replaced it.
func TestDescribesUntilDurable(t *testing.T) {
	var last *Transaction
	a := New(func(tx *Transaction) error { last = tx; return nil })
	now := int64(0)
	described := func(g *remotewrite.Generation, help string) []segment.Metadata {
		now++
		app := a.AppenderV2(t.Context())
		for _, name := range []string{"m", "n"} {
			_, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, name), 0, now, 1, nil, nil, storage.AOptions{MetricFamilyName: name, Metadata: metadata.Metadata{Type: "gauge", Help: help}})
			require.NoError(t, err)
		}
		require.NoError(t, app.Commit())
		b, err := remotewrite.Collect(g, remotewritetest.Rules(), remotewrite.NewRoom(1<<20, 1<<20, math.MaxInt64, nil), Collect([]*Transaction{last}))
		require.NoError(t, err)
		return b.Metadata
	}
	of := func(help string, names ...string) (all []segment.Metadata) {
		for _, n := range names {
			all = append(all, segment.Metadata{Metric: n, Type: "gauge", Help: help})
		}
		return all
	}
	g := remotewrite.NewGeneration(1)
	require.Equal(t, of("A", "m", "n"), described(g, "A"))
	require.Equal(t, of("A", "m", "n"), described(g, "A"), "it is not durable yet")
	g.Stored.Note(of("A", "m", "n"))
	for range 3 {
		require.Empty(t, described(g, "A"))
	}
	g.Stored.Note(of("B", "m"))
	for range 2 {
		require.Equal(t, of("A", "m"), described(g, "A"))
	}
	require.Equal(t, of("B", "n"), described(g, "B"))
	require.Equal(t, of("A", "m", "n"), described(remotewrite.NewGeneration(2), "A"), "another generation")

	g.Use([]series.Ref{0, 1})
	next := g.Next(3)
	require.Same(t, g.Table, next.Table)
	require.Equal(t, of("A", "m", "n"), described(next, "A"), "the next generation")
	next.Stored.Note(of("A", "m", "n"))
	require.Empty(t, described(next, "A"))
	require.Equal(t, 2, next.Table.Len())
}
