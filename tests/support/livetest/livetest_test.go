package livetest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write cases.json")

// TestCasesAreGenerated requires that cases.json is what generate returns, and so that replay
// agrees with every answer in it.
func TestCasesAreGenerated(t *testing.T) {
	var want bytes.Buffer
	for i, c := range generate() {
		b, err := json.Marshal(c)
		require.NoError(t, err)
		want.WriteString([]string{",\n", "[\n"}[min(1, max(0, 1-i))])
		want.Write(b)
	}
	want.WriteString("\n]\n")
	if *update {
		require.NoError(t, os.WriteFile("cases.json", want.Bytes(), 0o644))
	}
	got, err := os.ReadFile("cases.json")
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
}

func generate() []Case {
	del := func(from, to int64) Step { return Step{Delete: &[2]int64{from, to}} }
	floats := func(ts ...int64) Step { return Step{Floats: ts} }
	stale := func(ts ...int64) Step { return Step{Floats: ts, Stale: ts} }
	hists := func(ts ...int64) Step { return Step{Hists: ts} }
	out := []Case{
		{Name: "one object", Steps: []Step{floats(1, 2)}},
		{Name: "equal times", Steps: []Step{floats(1, 2), floats(2, 3)}},
		{Name: "late samples", Steps: []Step{floats(5, 6), floats(1, 2), floats(3, 7)}},
		{Name: "equal times in three objects", Steps: []Step{floats(1, 2, 3), floats(2, 3, 4), floats(3)}},
		{Name: "a stale marker replaces a value", Steps: []Step{floats(1, 2), stale(2)}},
		{Name: "a value replaces a stale marker", Steps: []Step{stale(2), floats(1, 2)}},
		{Name: "a deletion covers only what is there", Steps: []Step{floats(1, 2, 3), del(2, 3), floats(3, 4)}},
		{Name: "a value below a deleted one does not come back", Steps: []Step{floats(1), floats(1, 2), del(1, 1)}},
		{Name: "the newest is deleted before a late one", Steps: []Step{floats(2), del(0, 9), floats(1)}},
		{Name: "deletions that touch and overlap", Steps: []Step{floats(1, 2, 3, 4, 5, 6), del(1, 2), del(3, 3), del(2, 4), floats(2)}},
		{Name: "all is deleted", Steps: []Step{floats(1, 2), stale(3), del(0, 9)}},
		{Name: "histogram over float", Steps: []Step{floats(1, 2), hists(2, 3)}},
		{Name: "float over histogram", Steps: []Step{hists(2, 3), floats(1, 2)}},
		{Name: "both in one object", Steps: []Step{{Floats: []int64{1, 2}, Hists: []int64{2, 3}}}},
		{Name: "both, then a float", Steps: []Step{{Floats: []int64{1, 2}, Hists: []int64{2, 3}}, floats(2)}},
		{Name: "a deletion of both kinds", Steps: []Step{{Floats: []int64{1, 2}, Hists: []int64{2, 3}}, del(2, 2), hists(4)}},
	}
	r := rand.New(rand.NewPCG(6, 28))
	for i := range 24 {
		c := Case{Name: fmt.Sprintf("random %d", i)}
		for range 2 + r.IntN(6) {
			c.Steps = append(c.Steps, random(r, i%3 == 0))
		}
		out = append(out, c)
	}
	for i := range out {
		out[i].Want = replay(out[i].Steps, true)
		out[i].Undeleted = replay(out[i].Steps, false)
	}
	return out
}

func random(r *rand.Rand, hists bool) (s Step) {
	if r.IntN(4) == 0 {
		from := int64(r.IntN(30))
		return Step{Delete: &[2]int64{from, from + int64(r.IntN(10))}}
	}
	begin, end := r.IntN(20), 5+r.IntN(25)
	for t := int64(begin); t < int64(end); t++ {
		switch r.IntN(5) {
		case 0, 1:
			s.Floats = append(s.Floats, t)
		case 2:
			s.Floats, s.Stale = append(s.Floats, t), append(s.Stale, t)
		case 3:
			if hists {
				s.Hists = append(s.Hists, t)
			}
		}
	}
	if len(s.Floats)+len(s.Hists) == 0 {
		s.Floats = []int64{3}
	}
	return s
}

// replay is the rules by themselves: step after step, on a map. A deletion of what an object has
// must not bring back what a lower one has, which is deleted as well.
func replay(steps []Step, deletions bool) []Want {
	at := map[int64]Want{}
	for i, s := range steps {
		if s.Delete != nil {
			maps.DeleteFunc(at, func(t int64, _ Want) bool { return deletions && s.Delete[0] <= t && t <= s.Delete[1] })
			continue
		}
		for _, t := range s.Floats {
			at[t] = Want{t, i, "float"}
		}
		for _, t := range s.Stale {
			at[t] = Want{t, i, "stale"}
		}
		for _, t := range s.Hists {
			at[t] = Want{t, i, "hist"}
		}
	}
	out := []Want{}
	for _, t := range slices.Sorted(maps.Keys(at)) {
		out = append(out, at[t])
	}
	return out
}
