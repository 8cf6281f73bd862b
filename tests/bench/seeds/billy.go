package seeds

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

const (
	billySlice = 15 * time.Minute // 15,000 samples in a request
	perDay     = 24 * 60          // samples of a sensor
	needle     = 150              // degrees, once: no other reading is above needleFrom
	needleFrom = 100
	billySeed  = seed << 32
	allDays    = "Billy, all days: max(max_over_time(temperature[90d]))"
)

// billy is the benchmark Billy: sensors of temperature that report each minute for days, and how
// many samples each of its queries reads.
func billy(sensors, days int) (set *query.Set, read map[string]float64) {
	s := &query.Set{
		Name:  fmt.Sprintf("Billy, %s sensors × %s samples", table.Count(int64(sensors)), table.Count(int64(days*perDay))),
		Begin: day, Interval: time.Minute, Samples: days * perDay, Slice: billySlice,
	}
	s.Series = func(add func([]prompb.Label, func() float64)) {
		for i := range sensors {
			at := -1
			if i == sensors/2 {
				at = s.Samples / 2
			}
			add(labels("temperature", []string{"sensor_id", strconv.Itoa(i + 1)}), temperature(rand.New(rand.NewPCG(billySeed, uint64(i))), at))
		}
	}
	all := float64(sensors) * float64(s.Samples)
	read = map[string]float64{}
	ask := func(name, text string, samples float64, at ...time.Time) {
		q := query.Question{Name: "Billy, " + name + ": " + text}
		for _, t := range at {
			q.Variants = append(q.Variants, query.Question{Text: text, Start: t, End: t})
		}
		read[q.Name] = samples
		s.Questions = append(s.Questions, q)
	}
	var midnights, offGrid []time.Time
	rng := rand.New(rand.NewPCG(billySeed, 1<<63))
	for d := range days {
		midnights = append(midnights, s.Begin.Add(time.Duration(d+1)*24*time.Hour))
		if d > 0 {
			offGrid = append(offGrid, midnights[d-1].Add(time.Duration(1+rng.IntN(86_399))*time.Second))
		}
	}
	const maximum = `max(max_over_time(temperature[1d]))`
	ask("all days", `max(max_over_time(temperature[90d]))`, all, s.End())
	ask("a whole day", maximum, all/float64(days), midnights...)
	ask("a day off the grid", maximum, all/float64(days), offGrid...)
	ask("a needle", fmt.Sprintf(`max_over_time(temperature[90d]) > %d`, needleFrom), all, s.End())
	ask("a quantile of a day off the grid", `max(quantile_over_time(0.99, temperature[1d]))`, all/float64(days), offGrid...)
	return s, read
}

// temperature returns a sensor's readings in degrees with two decimals: exponentially distributed
// above a least one, which is another one each day. The reading at one time (-1: none) is the
// needle.
func temperature(rng *rand.Rand, needleAt int) func() float64 {
	n, least := -1, 0.0
	return func() float64 {
		if n++; n%perDay == 0 {
			least = 68 + rng.ExpFloat64()/3
		}
		if v := math.Round((least+rng.ExpFloat64()/1.5)*100) / 100; n != needleAt {
			return v
		}
		return needle
	}
}

// rate is how many million samples a processor writes, or reads, in a second.
type rate struct {
	Name      string  `json:"name"`
	Promlake  float64 `json:"promlake"`
	Peer      float64 `json:"peer,omitempty"`
	Published float64 `json:"published,omitempty"` // of VictoriaMetrics in 2020: 66 written and 380 read by 32 processors
}

// rates are those of the rows of a set, of which each query reads a number of samples (nil: no
// rates are wanted). A server that keeps results of whole windows need not read them.
func rates(set string, rows []table.Comparison, read map[string]float64) (all []rate) {
	per := func(samples, seconds float64) float64 {
		if seconds == 0 {
			return 0
		}
		return samples / 1e6 / seconds
	}
	for _, c := range rows {
		n, asked := read[c.Name]
		switch {
		case read != nil && c.Name == set+": load and compaction" && c.Unit == disk.CPUUnit:
			all = append(all, rate{c.Name, per(1e6, c.Promlake), per(1e6, c.Peer), 66.0 / 32})
		case asked && c.Unit == "CPU ms":
			r := rate{Name: c.Name, Promlake: per(n, c.Promlake/1000), Peer: per(n, c.Peer/1000)}
			if c.Name == allDays {
				r.Published = 380.0 / 32
			}
			all = append(all, r)
		}
	}
	return all
}

// rateRows is the table of rates.
func rateRows(all []rate) [][]string {
	rows := [][]string{{"million samples a CPU second (more is better)", server.Promlake, server.VictoriaMetrics, "published"}}
	for _, r := range all {
		row := []string{r.Name}
		for _, v := range []float64{r.Promlake, r.Peer, r.Published} {
			if v == 0 {
				row = append(row, table.Unknown)
			} else {
				row = append(row, fmt.Sprintf("%.3g", v))
			}
		}
		rows = append(rows, row)
	}
	return rows
}
