package cost_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/aws/cost"
)

// loads returns valid random loads.
func loads(t *testing.T, n int) []cost.Load {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	between := func(from, to float64) float64 {
		return math.Exp(math.Log(from) + r.Float64()*(math.Log(to)-math.Log(from)))
	}
	out := make([]cost.Load, n)
	for i := range out {
		l := cost.DefaultLoad()
		l.Series, l.SamplesPerSend = between(1, 1e8), between(1, 1e5)
		l.Scrape = time.Duration(between(1, 300)) * time.Second
		l.Retention = time.Duration(between(1, 1000)) * day
		l.Tenants, l.Senders = int(between(1, 2000)), int(between(1, 1000))
		l.Mode = cost.Modes[r.IntN(len(cost.Modes))]
		l.WriteThrough = []cost.Entry{cost.HTTPAPI, cost.FunctionURL}[r.IntN(2)]
		if l.Mode == cost.Grouped {
			l.WriteThrough = cost.HTTPAPI
		}
		l.SystemLogs = []string{"warn", "info"}[r.IntN(2)]
		l.Arch = []string{"arm64", "x86_64"}[r.IntN(2)]
		l.Region = []string{"us-east-1", "eu-central-1"}[r.IntN(2)]
		l.QueriesPerDay, l.SamplesPerQuery = between(1, 1e6), between(1, 1e9)
		l.Churn = r.Float64()
		l.Queue.Messages, l.Queue.Window = 1+r.IntN(10_000), time.Duration(r.IntN(300))*time.Second
		require.NoError(t, l.Check())
		out[i] = l
	}
	return out
}

// TestMoreCostsMore changes one value at a time. Requests have a fixed size, because larger
// requests make more series cheaper.
func TestMoreCostsMore(t *testing.T) {
	for _, l := range loads(t, 500) {
		l.SamplesPerSend = 1 // independent of the senders' deadline
		before := estimate(t, l).Dollars()
		for name, change := range map[string]func(*cost.Load){
			"series":            func(l *cost.Load) { l.Series *= 1.5 },
			"scrape":            func(l *cost.Load) { l.Scrape = max(time.Second, l.Scrape/2) },
			"retention":         func(l *cost.Load) { l.Retention *= 2 },
			"churn":             func(l *cost.Load) { l.Churn *= 2 },
			"queries":           func(l *cost.Load) { l.QueriesPerDay *= 2 },
			"samples per query": func(l *cost.Load) { l.SamplesPerQuery *= 2 },
			"answers":           func(l *cost.Load) { l.BytesPerAnswer *= 2 },
			"streamed answers":  func(l *cost.Load) { l.BytesPerAnswer = 10e6 },
			"a key of KMS":      func(l *cost.Load) { l.KMS = true },
			"a replica":         func(l *cost.Load) { l.Replica = true },
		} {
			more := l
			change(&more)
			require.GreaterOrEqual(t, estimate(t, more).Dollars(), before*(1-1e-9), "more %s: %+v", name, l)
		}
	}
}

// TestLargerSendsAreCheaper checks the recommendation.
func TestLargerSendsAreCheaper(t *testing.T) {
	for _, l := range loads(t, 300) {
		l.SendDeadline = time.Hour
		l.SamplesPerSend = 500
		small := estimate(t, l).Dollars()
		l.SamplesPerSend = cost.RecommendedSend
		require.LessOrEqual(t, estimate(t, l).Dollars(), small*(1+1e-9), "%+v", l)
	}
}

func TestLinesAddUp(t *testing.T) {
	for _, l := range loads(t, 300) {
		b := estimate(t, l)
		var lines, components float64
		for _, line := range b.Lines {
			require.Positive(t, line.Quantity, line.What)
			require.GreaterOrEqual(t, line.Dollars, 0.0)
			require.NotEmpty(t, line.Formula)
			lines += line.Dollars
		}
		for _, c := range cost.Components {
			components += b.Of(c)
		}
		require.False(t, math.IsNaN(lines) || math.IsInf(lines, 0))
		require.InEpsilon(t, b.Dollars(), lines, 1e-9)
		require.InEpsilon(t, b.Dollars(), components, 1e-9, "every line is of a component")
		require.InEpsilon(t, b.Dollars(), b.PerMillion()*l.Samples()/1e6, 1e-9)
	}
}

// TestNothingCostsTheFixedParts: without series and queries, the bill has the schedule, the pollers
// and the alarms.
func TestNothingCostsTheFixedParts(t *testing.T) {
	l := cost.DefaultLoad()
	l.Series, l.QueriesPerDay = 0, 0
	b := estimate(t, l)
	require.Zero(t, b.PerMillion())
	require.Less(t, b.Dollars(), 3.0, "a stack that nobody uses")
	for _, c := range []cost.Component{cost.Front, cost.Ingest, cost.Flush, cost.Writes, cost.Compact, cost.Storage, cost.Query} {
		require.Zero(t, b.Of(c), c)
	}
	for _, c := range []cost.Component{cost.Queue, cost.Plan, cost.Logs} {
		require.Positive(t, b.Of(c), c)
	}
}

// TestRequestsAreAsLargeAsSendersCanMakeThem: a sender with few series does not reach
// max_samples_per_send.
func TestRequestsAreAsLargeAsSendersCanMakeThem(t *testing.T) {
	l := cost.DefaultLoad()
	l.Series, l.Senders, l.SamplesPerSend = 15_000, 1, 10_000
	require.InDelta(t, 5000, l.Sent(), 1e-9, "5 s of 1,000 samples a second")
	l.Series = 1.5e6
	require.InDelta(t, 10_000, l.Sent(), 1e-9)
	l.Series = 0
	require.InDelta(t, 1, l.Sent(), 1e-9)
}

func TestAdvice(t *testing.T) {
	const url = "Write through the ingest function's own URL (--write-through function-url): it saves $"
	for _, tc := range []struct {
		name   string
		change func(*cost.Load)
		want   []string
	}{
		{"as recommended", func(*cost.Load) {}, []string{"Mind that the senders need max_samples_per_send: 10000 for that: with Prometheus' default of 2000 it would be $", url + "17.28 of $", "Stay with mode buffered."}},
		{"small requests", func(l *cost.Load) { l.SamplesPerSend = 2000 }, []string{"Set max_samples_per_send: 10000 in the senders' queue_config: it saves $", url + "86.40 of $", "Stay with"}},
		{"through the URL", func(l *cost.Load) { l.WriteThrough = cost.FunctionURL }, []string{"Mind that", "Stay with mode buffered."}},
		{"grouped, which has no URL", func(l *cost.Load) { l.Mode = cost.Grouped }, []string{"Mind that", "Mode buffered would cost"}},
		{"few series", func(l *cost.Load) { l.Series, l.Senders = 18_000, 1 }, []string{"Set batch_send_deadline: 15s in the senders' queue_config", "Mind that", "Mode direct would cost"}},
		{"both", func(l *cost.Load) { l.Series, l.Senders, l.SamplesPerSend = 18_000, 1, 500 }, []string{"Set max_samples_per_send: 10000 and batch_send_deadline: 15s in", url, "Mode direct would cost"}},
		{"very many series", func(l *cost.Load) { l.Series, l.Senders = 1e7, 100 }, []string{"Mind that", url, "Instances that never idle are cheaper"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := cost.DefaultLoad()
			tc.change(&l)
			p, m := lists(t, l.Region)
			a, err := cost.Advise(l, p, m)
			require.NoError(t, err)
			require.Len(t, a.Modes, len(cost.Modes))
			require.Len(t, a.Advise, len(tc.want), a.Advise)
			for i, want := range tc.want {
				require.Contains(t, a.Advise[i], want)
			}
		})
	}
}
