package laketest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/objstore"
)

// RollupRows are series over three days before Now, with every possible content of a bucket: no
// samples, only stale markers, values that are not numbers, zeros of both signs, and samples on the
// ends of buckets and days. Every second series is too sparse for rows in rollups of 5 minutes.
func RollupRows() []segment.Row {
	rng := rand.New(rand.NewPCG(11, 5))
	odd := []float64{math.NaN(), math.Float64frombits(0x7ff8000000000abc), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.Float64frombits(value.StaleNaN)}
	now := Now().UnixMilli()
	var rows []segment.Row
	for i := range 6 {
		r := segment.Row{Labels: Metric("m", "i", fmt.Sprint(i), "job", string(rune('a'+i%2)))}
		v := 0.0
		t := now/(24*60*minute)*(24*60*minute) - 48*60*minute - 90*minute // some before the midnight
		scrape, chances := int64(20_000), 400
		if i%2 == 1 {
			scrape, chances = 6000, 4000
		}
		for t <= now {
			switch n := rng.IntN(chances); {
			case n == 0:
				t += rng.Int64N(130 * minute)
			case n < 4: // a while of something odd
				x := odd[rng.IntN(len(odd))]
				for until := t + rng.Int64N(100*minute); t < until; t += scrape {
					r.Floats = append(r.Floats, segment.Float{T: t, V: x})
				}
			case n < 20:
				r.Floats = append(r.Floats, segment.Float{T: t, V: odd[rng.IntN(len(odd))]})
			default:
				v += float64(rng.IntN(2001)-1000) / 8
				r.Floats = append(r.Floats, segment.Float{T: t, V: v})
			}
			if t += scrape; i%3 == 0 {
				t += rng.Int64N(500)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// RollupStates are what may happen to the series of the blocks.
var RollupStates = []struct {
	Name  string
	Apply func(l *Lake)
}{
	{"plain", func(*Lake) {}},
	{"deletions", func(l *Lake) {
		now := Now().UnixMilli()
		l.Delete(tenant.Default, []*labels.Matcher{Equal("job", "b")}, now-40*60*minute, now-38*60*minute)
		l.Delete(tenant.Default, []*labels.Matcher{Equal("job", "a")}, now-3*minute, now)
	}},
	{"later segments", func(l *Lake) {
		now := Now().UnixMilli()
		late := segment.Row{Labels: Metric("m", "i", "0", "job", "a")}
		for i, f := range RollupRows()[0].Floats { // other values for some samples that the blocks have too
			if f.T > now-30*60*minute && f.T < now-26*60*minute && i%3 > 0 {
				late.Floats = append(late.Floats, segment.Float{T: f.T, V: 1e9 * float64(i%3*2-3)}, segment.Float{T: f.T + 1, V: f.V})
			}
		}
		fresh := segment.Row{Labels: Metric("m", "i", "new", "job", "b"), Floats: []segment.Float{{T: now - minute, V: 5}, {T: now - 25*60*minute, V: 6}}}
		l.Write(tenant.Default, []segment.Row{late, fresh})
	}},
}

// LakesOfRollups returns three lakes with the same samples: two without rollups, one of which uses
// the engine alone and one SQL, and one with rollups.
func LakesOfRollups(t *testing.T, rows []segment.Row, remote bool, apply func(*Lake)) (engine, plain, rolled *Lake) {
	store, other := NewDir(t), objstore.Store(NewDir(t))
	if remote {
		other = &Remote{Store: other}
	}
	engine, plain, rolled = New(t, store, PushNone), New(t, store, PushAll), New(t, other, PushAll)
	for _, l := range []*Lake{plain, rolled} {
		l.WriteBlocks(tenant.Default, Shape{Level: key.L24h, GroupRows: 7000, Rollups: l == rolled}, rows)
		apply(l)
	}
	return engine, plain, rolled
}
