package live_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/tests/support/livetest"
)

var up = labels.FromStrings("__name__", "up", "job", "a")

// TestCases answers every case with Pick, and those without histograms with Floats.Merge as well.
func TestCases(t *testing.T) {
	for _, c := range livetest.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			var tombs []catalog.Tombstone
			var through []ulid.ULID
			for i, s := range c.Steps {
				id := ulid.ULID{15: byte(i + 1)}
				through = append(through, id)
				if s.Delete != nil {
					tombs = append(tombs, catalog.Tombstone{ID: id, MinT: s.Delete[0], MaxT: s.Delete[1], Matchers: []catalog.Matcher{{Type: "=", Name: "job", Value: "a"}}})
				}
			}
			d, err := live.NewDeletions(tombs, through)
			require.NoError(t, err)
			matching := d.Matching(nil, up)
			require.Len(t, matching, len(tombs))
			var floats live.Floats
			var hists []live.Sample
			for i, s := range c.Steps {
				gone := d.Gone(nil, i, matching)
				floats.Begin(i)
				from := len(floats.TS)
				for _, at := range s.Floats {
					floats.TS, floats.V = append(floats.TS, at), append(floats.V, float64(i))
				}
				deleted := floats.Cut(from, gone)
				require.Equal(t, len(s.Floats)-deleted, len(floats.TS)-from)
				for _, at := range s.Hists {
					if !live.Within(at, gone) {
						hists = append(hists, live.Sample{T: at, Object: i, Hist: true})
					}
				}
			}
			require.Equal(t, c.Want, picked(&c, live.Pick(floats.Samples(hists))))
			if !c.HasHists() {
				floats.Merge()
				var merged []live.Sample
				for i, at := range floats.TS {
					merged = append(merged, live.Sample{T: at, Object: int(floats.V[i])})
				}
				require.Equal(t, c.Want, picked(&c, merged))
			}
		})
	}
}

// picked describes samples as a case does.
func picked(c *livetest.Case, samples []live.Sample) []livetest.Want {
	out := []livetest.Want{}
	for _, x := range samples {
		w := livetest.Want{T: x.T, Step: x.Object, Kind: "float"}
		if x.Hist {
			w.Kind = "hist"
		} else if slices.Contains(c.Steps[x.Object].Stale, x.T) {
			w.Kind = "stale"
		}
		out = append(out, w)
	}
	return out
}

// TestMergeIsPick merges many random runs, with start timestamps, and holds the result against
// Pick.
func TestMergeIsPick(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 14))
	var f live.Floats
	for range 300 {
		f.Reset()
		var want []live.Sample
		for object := range r.IntN(9) {
			for range 1 + r.IntN(2) { // stretches of one object ascend
				f.Begin(object)
			}
			at := int64(r.IntN(100))
			for range r.IntN(40) {
				at += 1 + int64(r.IntN(5))
				f.TS, f.V, f.ST = append(f.TS, at), append(f.V, float64(object)), append(f.ST, at-1)
			}
		}
		want = live.Pick(f.Samples(nil))
		f.Merge()
		require.Len(t, f.TS, len(want))
		for i, x := range want {
			require.Equal(t, []any{x.T, float64(x.Object), x.T - 1}, []any{f.TS[i], f.V[i], f.ST[i]})
		}
	}
}

func TestMatching(t *testing.T) {
	m := func(typ, name, v string) catalog.Matcher { return catalog.Matcher{Type: typ, Name: name, Value: v} }
	d, err := live.NewDeletions([]catalog.Tombstone{
		{ID: ulid.ULID{1}, Matchers: []catalog.Matcher{m("=", "job", "a"), m("=~", "__name__", "u.*")}, MinT: 5, MaxT: 6},
		{ID: ulid.ULID{2}, Matchers: []catalog.Matcher{m("=", "job", "a"), m("=", "zone", "eu")}},
		{ID: ulid.ULID{3}, Matchers: []catalog.Matcher{m("=", "zone", "")}, MinT: 7, MaxT: 9},
	}, []ulid.ULID{{}, {1}, {3}})
	require.NoError(t, err)
	require.Equal(t, []int{0, 2}, d.Matching(nil, up))
	require.Equal(t, tombstones.Intervals{{Mint: 5, Maxt: 9}}, d.Gone(nil, 0, []int{0, 2}))
	require.Equal(t, tombstones.Intervals{{Mint: 7, Maxt: 9}}, d.Gone(nil, 1, []int{0, 2}))
	require.Empty(t, d.Gone(nil, 2, []int{0, 2}))
	require.False(t, d.Concern(2))
	var none live.Deletions
	require.Empty(t, none.Gone(nil, 0, none.Matching(nil, up)))

	_, err = live.NewDeletions([]catalog.Tombstone{{Matchers: []catalog.Matcher{m("=~", "job", "(")}}}, nil)
	require.ErrorIs(t, err, catalog.ErrInvalid)
}
