package seeds

import (
	"fmt"
	"time"

	"github.com/promlake/promlake/tests/bench/query"
)

// tstorageQueries of each scenario are sent twice; the second time counts.
const tstorageQueries = 100

// TStorage asks the data of CPUOnly as TStorage's benchmark does: for twelve hours of random hosts
// and times, one series raw, the ten series of a host raw, and the hourly means of all series.
func TStorage(hosts int, span time.Duration) *query.Set {
	const length = 12 * time.Hour
	s := CPUOnly(hosts, span)
	a := newAsker(s, hosts)
	scenario := func(name string, step time.Duration, text func() string) query.Question {
		q := a.kind("TStorage, "+name, tstorageQueries, length, step, text)
		q.Each = true
		for i := range q.Variants {
			if step == 0 { // an instant query for a range returns samples as they are
				q.Variants[i].Start = q.Variants[i].End
			}
		}
		return q
	}
	s.Questions = []query.Question{
		scenario("one series raw", 0, func() string {
			return fmt.Sprintf(`cpu_%s{%s}[12h]`, cpu.fields[a.rng.IntN(len(cpu.fields))].name, a.some(1))
		}),
		scenario("ten series of a host raw", 0, func() string { return fmt.Sprintf(`{__name__=~'cpu_.*', %s}[12h]`, a.some(1)) }),
		scenario("hourly means of all series", time.Hour, func() string {
			return each(cpu.fields, func(metric string) string { return fmt.Sprintf(`avg_over_time(%s[1h])`, metric) })
		}),
	}
	return s
}
