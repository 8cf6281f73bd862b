package series

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
)

// referencePriority is the order of blocks as its specification states it.
func referencePriority(a, b labels.Labels) int {
	by := func(name string) int { return strings.Compare(a.Get(name), b.Get(name)) }
	rest := func(l labels.Labels) labels.Labels {
		return labels.NewBuilder(l).Del(model.MetricNameLabel, "cluster", "namespace", "job", "instance").Labels()
	}
	return cmp.Or(by(model.MetricNameLabel), by("cluster"), by("namespace"), by("job"), by("instance"), labels.Compare(rest(a), rest(b)))
}

func internAll(t testing.TB, table *Table, sets []labels.Labels) {
	t.Helper()
	for i, l := range sets {
		var lset []Label
		l.Range(func(l labels.Label) { lset = append(lset, Label{l.Name, l.Value}) })
		ref, err := table.Intern(lset)
		require.NoError(t, err)
		require.Equal(t, Ref(i), ref)
	}
}

func TestComparePriority(t *testing.T) {
	sets := []labels.Labels{ // ascending
		labels.FromStrings("zone", "z"),
		labels.FromStrings("cluster", "a"),
		labels.FromStrings("__name__", "Up", "cluster", "z"),
		labels.FromStrings("__name__", "up"),
		labels.FromStrings("__name__", "up", "a", "1"),
		labels.FromStrings("__name__", "up", "zone", "0"),
		labels.FromStrings("__name__", "up", "instance", "a"),
		// the label a sorts before instance by name, but counts after it
		labels.FromStrings("__name__", "up", "a", "9", "instance", "a"),
		labels.FromStrings("__name__", "up", "a", "0", "instance", "b"),
		labels.FromStrings("__name__", "up", "job", "a"),
		labels.FromStrings("__name__", "up", "instance", "0", "job", "a"),
		labels.FromStrings("__name__", "up", "namespace", "a"),
		labels.FromStrings("__name__", "up", "instance", "a", "job", "a", "namespace", "a"),
		labels.FromStrings("__name__", "up", "job", "b", "namespace", "a"),
		labels.FromStrings("__name__", "up", "cluster", "a"),
		labels.FromStrings("__name__", "up", "cluster", "b", "a", "0"),
		labels.FromStrings("__name__", "upper", "a", "0"),
	}
	table := NewTable(1)
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(sets))
	shuffled := make([]labels.Labels, len(sets))
	refs := make([]Ref, len(sets))
	for i, at := range order {
		shuffled[i], refs[at] = sets[at], Ref(i)
	}
	internAll(t, table, shuffled)
	v := table.View()
	for i, a := range refs {
		for j, b := range refs {
			require.Equal(t, cmp.Compare(i, j), cmp.Compare(ComparePriority(&v, a, b), 0), "%s, %s", sets[i], sets[j])
			require.Equal(t, cmp.Compare(i, j), cmp.Compare(referencePriority(sets[i], sets[j]), 0), "%s, %s", sets[i], sets[j])
		}
	}
}

func TestComparePriorityAgainstReference(t *testing.T) {
	names := []string{"__name__", "a", "cluster", "d", "instance", "j", "job", "k", "namespace", "z"}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var sets []labels.Labels
		seen := map[string]bool{}
		for range 60 {
			b := labels.NewBuilder(labels.EmptyLabels())
			for range rng.IntN(7) {
				b.Set(names[rng.IntN(len(names))], fmt.Sprint(rng.IntN(3)))
			}
			if l := b.Labels(); !seen[l.String()] {
				seen[l.String()] = true
				sets = append(sets, l)
			}
		}
		table := NewTable(seed)
		internAll(t, table, sets)
		v := table.View()
		got := make([]Ref, len(sets))
		for i := range got {
			got[i] = Ref(i)
		}
		want := slices.Clone(got)
		sorted := slices.Clone(got)
		slices.SortFunc(got, func(a, b Ref) int { return ComparePriority(&v, a, b) })
		SortPriority(&v, sorted)
		require.Equal(t, got, sorted, "seed %d", seed)
		rng.Shuffle(len(sorted), func(i, j int) { sorted[i], sorted[j] = sorted[j], sorted[i] })
		sortPriority(&v, sorted, 4+uint(seed%8)) // some priority labels do not fit
		require.Equal(t, got, sorted, "seed %d", seed)
		slices.SortFunc(want, func(a, b Ref) int { return referencePriority(sets[a], sets[b]) })
		require.Equal(t, want, got, "seed %d", seed)
	}
}

func BenchmarkComparePriority(b *testing.B) {
	sets := []labels.Labels{
		labels.FromStrings("__name__", "node_cpu_seconds_total", "cluster", "prod", "namespace", "monitoring", "job", "node", "instance", "host-1:9100", "cpu", "0", "mode", "idle"),
		labels.FromStrings("__name__", "node_cpu_seconds_total", "cluster", "prod", "namespace", "monitoring", "job", "node", "instance", "host-1:9100", "cpu", "1", "mode", "idle"),
	}
	table := NewTable(1)
	internAll(b, table, sets)
	v := table.View()
	for b.Loop() {
		ComparePriority(&v, 0, 1)
	}
}
