package series_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// pairs converts an upstream label set for Intern.
func pairs(lset labels.Labels) []series.Label {
	var out []series.Label
	lset.Range(func(l labels.Label) { out = append(out, series.Label{Name: l.Name, Value: l.Value}) })
	return out
}

// alias returns a string that changes with its bytes, as decoders return them.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// stored returns a label set from a view.
func stored(v *series.View, r series.Ref) labels.Labels {
	b := labels.NewScratchBuilder(8)
	return v.Labels(&b, r)
}

// randomSets returns n different label sets with few names and values, so that they share prefixes,
// names and values.
func randomSets(rng *rand.Rand, n int) []labels.Labels {
	names := []string{"A", "Zone", "a", "aa", "ab", "instance", "job", "zone", "ünï"}
	values := []string{"0", "1", "10", "2", "a", "a b", "é", "\x00", "￿"}
	metrics := []string{"", "a", "a:b", "up", "up_total", "ü"}
	seen := map[string]bool{}
	var out []labels.Labels
	for len(out) < n {
		b := labels.NewBuilder(labels.EmptyLabels())
		b.Set(model.MetricNameLabel, metrics[rng.IntN(len(metrics))])
		for _, i := range rng.Perm(len(names))[:rng.IntN(5)] {
			b.Set(names[i], values[rng.IntN(len(values))])
		}
		l := b.Labels()
		if !seen[l.String()] {
			seen[l.String()] = true
			out = append(out, l)
		}
	}
	return out
}

// byMetricThenLabels is the order of a segment's rows, on upstream's label sets.
func byMetricThenLabels(a, b labels.Labels) int {
	rest := func(l labels.Labels) labels.Labels { return labels.NewBuilder(l).Del(model.MetricNameLabel).Labels() }
	return cmp.Or(strings.Compare(a.Get(model.MetricNameLabel), b.Get(model.MetricNameLabel)), labels.Compare(rest(a), rest(b)))
}

// TestIDGolden pins the formula; the values are from another implementation of xxh3.
func TestIDGolden(t *testing.T) {
	for _, tc := range []struct {
		lset labels.Labels
		want uint64
	}{
		{labels.EmptyLabels(), 0x2d06800538d394c2},
		{labels.FromStrings("__name__", "up"), 0xb1decace4493c590},
		{labels.FromStrings("__name__", "up", "instance", "a:9100", "job", "node"), 0x9a513a5f7f22bfff},
		{labels.FromStrings("__name__", "up", "Zone", "eu", "ünï", "çödé"), 0x5975bc601fdab3f9},
	} {
		assert.Equal(t, tc.want, segmenttest.ID(tc.lset), "%s: %#x", tc.lset, segmenttest.ID(tc.lset))
	}
	require.Equal(t, segmenttest.ID(labels.FromStrings("__name__", "up")), segmenttest.ID(labels.FromStrings("__name__", "up", "job", "")), "empty is absent")
	require.NotEqual(t, segmenttest.ID(labels.FromStrings("a", "bc")), segmenttest.ID(labels.FromStrings("ab", "c")))
}

func TestInternGivesEachLabelSetOneReference(t *testing.T) {
	sets := randomSets(rand.New(rand.NewPCG(1, 1)), 3000)
	table := series.NewTable(7)
	for range 2 {
		for i, l := range sets {
			ref, err := table.Intern(pairs(l))
			require.NoError(t, err)
			require.Equal(t, series.Ref(i), ref)
		}
	}
	require.Equal(t, len(sets), table.Len())
	v := table.View()
	require.Equal(t, len(sets), v.Len())
	for i, l := range sets {
		require.Equal(t, l.String(), stored(&v, series.Ref(i)).String())
		require.Equal(t, segmenttest.ID(l), v.ID(series.Ref(i)))
	}
}

func TestInternCopiesItsStrings(t *testing.T) {
	text := []byte("__name__upjobnode")
	lset := []series.Label{{Name: alias(text[:8]), Value: alias(text[8:10])}, {Name: alias(text[10:13]), Value: alias(text[13:])}}
	table := series.NewTable(0)
	_, err := table.Intern(lset)
	require.NoError(t, err)
	for i := range text {
		text[i] = '!'
	}
	v := table.View()
	require.Equal(t, `{__name__="up", job="node"}`, stored(&v, 0).String())
	again, err := table.Intern([]series.Label{{Name: "__name__", Value: "up"}, {Name: "job", Value: "node"}})
	require.NoError(t, err)
	require.Equal(t, series.Ref(0), again)
}

func TestOrderEqualsSortedLabelSets(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		sets := randomSets(rng, 1+rng.IntN(800))
		table := series.NewTable(seed)
		var order series.Order
		for done := 0; done < len(sets); {
			n := min(len(sets)-done, 1+rng.IntN(200))
			for _, l := range sets[done : done+n] {
				_, err := table.Intern(pairs(l))
				require.NoError(t, err)
			}
			done += n
			v := table.View()
			order.Extend(&v)
			order.Extend(&v) // nothing new
			require.Equal(t, done, order.Len())
			for i := done - n; i < done; i++ { // of the new ones alone
				require.Equal(t, series.Ref(i), order.At(order.Rank(series.Ref(i))))
			}
			if rng.IntN(2) == 0 {
				continue // until more came
			}
			want := slices.SortedFunc(slices.Values(sets[:done]), byMetricThenLabels)
			for rank := range uint32(done) {
				ref := order.At(rank)
				require.Equal(t, rank, order.Rank(ref))
				require.Equal(t, want[rank].String(), stored(&v, ref).String(), "seed %d, rank %d", seed, rank)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	table := series.NewTable(1)
	// all keys collide
	key := func(i int) series.Key { return series.Key{Lo: uint64(i % 3), Hi: uint64(i)} }
	_, ok := table.Lookup(key(0))
	require.False(t, ok)
	for i := range 200 {
		ref, err := table.Intern([]series.Label{{Name: "i", Value: fmt.Sprint(i)}})
		require.NoError(t, err)
		table.Alias(key(i), ref)
		table.Alias(key(1000+i), ref)
		table.Alias(key(i), 0) // a known key keeps its reference
	}
	for i := range 200 {
		for _, k := range []series.Key{key(i), key(1000 + i)} {
			for _, guess := range []series.Ref{series.Ref(i), series.Ref(i + 1), 0, 1 << 31} {
				ref, ok := table.LookupNear(k, guess)
				require.True(t, ok)
				require.Equal(t, series.Ref(i), ref)
			}
			ref, ok := table.Lookup(k)
			require.True(t, ok)
			require.Equal(t, series.Ref(i), ref)
		}
	}
	_, ok = table.LookupNear(key(500), 3)
	require.False(t, ok)
	_, ok = table.LookupNear(series.Key{}, 7)
	require.True(t, ok, "the zero key is a key: key(0)")
}

// TestViewStaysValid reads views in one goroutine while another fills the table. Run it with -race.
func TestViewStaysValid(t *testing.T) {
	sets := randomSets(rand.New(rand.NewPCG(3, 3)), 4000)
	table := series.NewTable(0)
	views := make(chan series.View, 8)
	failed := make(chan error, 1)
	go func() {
		defer close(views)
		for i, l := range sets {
			table.Lock()
			_, err := table.Intern(pairs(l))
			table.Unlock()
			if err != nil {
				failed <- err
				return
			}
			if i%97 == 0 {
				table.RLock()
				v := table.View()
				table.RUnlock()
				views <- v
			}
		}
	}()
	var order series.Order
	n := 0
	for v := range views {
		order.Extend(&v)
		for i := range v.Len() {
			require.Equal(t, sets[i].String(), stored(&v, series.Ref(i)).String())
		}
		n++
	}
	require.Equal(t, (len(sets)+96)/97, n)
	require.Empty(t, failed)
}

func TestBytesGrowWithContent(t *testing.T) {
	table := series.NewTable(0)
	before := table.Bytes()
	for i := range 100 {
		ref, err := table.Intern([]series.Label{{Name: "__name__", Value: "m"}, {Name: "i", Value: strings.Repeat("x", 1000) + fmt.Sprint(i)}})
		require.NoError(t, err)
		table.Alias(series.Key{Lo: uint64(i)}, ref)
	}
	grown := table.Bytes() - before
	require.Greater(t, grown, int64(100_000))
	require.Less(t, grown, int64(200_000))
	for i := range 10_000 { // the memory of many encodings of one label set is bounded, too
		table.Alias(series.Key{Lo: uint64(i), Hi: 1}, 0)
	}
	require.Greater(t, table.Bytes()-before, grown+10_000*24)
}

// TestOrderSorts sorts some of the label sets of a growing table, in both orders.
func TestOrderSorts(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		sets := randomSets(rng, 1+rng.IntN(500))
		table := series.NewTable(seed)
		plain, priority := &series.Order{}, series.NewPriorityOrder()
		for done := 0; done < len(sets); {
			n := min(len(sets)-done, 1+rng.IntN(200))
			for _, l := range sets[done : done+n] {
				_, err := table.Intern(pairs(l))
				require.NoError(t, err)
			}
			done += n
			v := table.View()
			plain.Extend(&v)
			priority.Extend(&v)
			for range 5 {
				var refs []series.Ref
				for _, r := range rng.Perm(done) {
					if rng.IntN(3) > 0 {
						refs = append(refs, series.Ref(r))
					}
				}
				for order, compare := range map[*series.Order]func(a, b series.Ref) int{
					plain: v.Compare, priority: func(a, b series.Ref) int { return series.ComparePriority(&v, a, b) },
				} {
					got := slices.Clone(refs)
					order.Sort(got)
					require.Equal(t, slices.SortedFunc(slices.Values(refs), compare), got, "seed %d", seed)
				}
			}
		}
	}
}

// TestAdd fills tables through keys that are functions of the label sets, through label sets,
// or through both in turn: each label set has one reference, by any of the ways.
func TestAdd(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 9))
		sets := randomSets(rng, 1+rng.IntN(300))
		table := series.NewTable(seed)
		key := func(i int) series.Key { return series.Key{Hi: uint64(i), Lo: uint64(i % 50)} }
		known := map[int]series.Ref{}
		mixed := 0 // from this step on
		if mixed = rng.IntN(1500); seed%3 == 0 {
			mixed = 2000
		}
		for step := range 1000 {
			i := rng.IntN(len(sets))
			metric, ords := ordinals(table, sets[i])
			ref, ok := table.Lookup(key(i))
			var err error
			switch {
			case ok:
			case step < mixed || rng.IntN(2) == 0:
				if rng.IntN(2) == 0 {
					ref, err = table.AddPairs(key(i), metric, ords)
				} else {
					ref, err = table.Add(key(i), pairs(sets[i]))
				}
				require.NoError(t, err)
				got, ok := table.Lookup(key(i))
				require.True(t, ok)
				require.Equal(t, ref, got)
			case rng.IntN(2) == 0:
				ref, err = table.InternPairs(metric, ords)
				require.NoError(t, err)
			default:
				ref, err = table.Intern(pairs(sets[i]))
				require.NoError(t, err)
			}
			if want, ok := known[i]; ok {
				require.Equal(t, want, ref, "seed %d, step %d", seed, step)
			}
			known[i] = ref
		}
		require.Equal(t, len(known), table.Len())
		v := table.View()
		for i, ref := range known {
			require.Equal(t, sets[i].String(), stored(&v, ref).String())
		}
	}
}

// ordinals are the ordinals of a label set's metric and other labels.
func ordinals(t *series.Table, l labels.Labels) (metric uint32, out []series.Pair) {
	metric = t.MetricOrd(l.Get("__name__"))
	for _, p := range pairs(l) {
		if p.Name != "__name__" {
			n := t.NameOrd(p.Name)
			out = append(out, series.Pair{Name: n, Value: t.ValueOrd(n, p.Value)})
		}
	}
	return metric, out
}
