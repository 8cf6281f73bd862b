package query

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// TestLiveHour: the hour ends when its last scrape has arrived, and lies in one window of two
// hours.
func TestLiveHour(t *testing.T) {
	f := Live{Hosts: 20, Scrapes: 240, Pace: 24, Rounds: 1}
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return v
	}
	for now, begin := range map[string]string{
		"2026-03-01T11:30:10Z": "2026-03-01T10:32:30Z", // it arrives within two and a half minutes
		"2026-03-01T11:58:00Z": "2026-03-01T11:00:00Z", // the next window begins meanwhile
		"2026-03-01T12:30:00Z": "2026-03-01T11:00:00Z",
		"2026-03-01T12:57:30Z": "2026-03-01T12:00:00Z",
	} {
		s, err := f.scale(at(now))
		require.NoError(t, err)
		require.Equal(t, at(begin), s.begin(), now)
		require.Equal(t, time.Hour, s.end().Sub(s.begin()))
	}
	for _, bad := range []Live{
		{Hosts: 0, Scrapes: 240, Pace: 1, Rounds: 1}, {Hosts: 1, Scrapes: 79, Pace: 1, Rounds: 1}, {Hosts: 1, Scrapes: 481, Pace: 1, Rounds: 1},
		{Hosts: 1, Scrapes: 240, Pace: 0.5, Rounds: 1}, {Hosts: 1, Scrapes: 240, Pace: 1},
	} {
		_, err := bad.scale(time.Now())
		require.ErrorContains(t, err, "want at least a host")
	}
}

// TestLiveQuestions: they can be parsed, lie within the hour, and have names of their own.
func TestLiveQuestions(t *testing.T) {
	f := Live{Hosts: 20, Scrapes: 240, Pace: 24, Rounds: 1}
	s, err := f.scale(time.Now())
	require.NoError(t, err)
	all := s.questions()
	require.Len(t, all, 14)
	names := map[string]bool{}
	for i, q := range all {
		require.Equal(t, f.Names()[i], q.name())
		names[q.name()] = true
	}
	require.Len(t, names, 14)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		all = append(all, s.panel(rng))
	}
	for _, q := range all {
		_, err := parser.NewParser(parser.Options{}).ParseExpr(q.Text)
		require.NoError(t, err, q.Text)
		require.False(t, q.Start.Before(s.begin()), q.Text)
		require.Equal(t, s.end(), q.End, q.Text)
	}
}

// TestLive runs all of it with servers that only answer.
func TestLive(t *testing.T) {
	servers := fakes(t, "2", "3", "2").Flags
	f := Live{Flags: servers, Hosts: 1, Scrapes: 80, Pace: 1e6, Rounds: 1, Mix: time.Millisecond, WorkDir: t.TempDir()}
	r, err := f.measure(context.Background(), server.Promlake, server.VictoriaMetrics)
	require.NoError(t, err)
	require.NoError(t, r.failures())
	require.Equal(t, int64(507*80), r.Prepared[1].Life.Samples)
	rows := map[string]table.Comparison{}
	for _, c := range r.comparisons() {
		rows[c.Name+", "+c.Unit] = c
		require.Positive(t, c.Promlake, c.Name)
	}
	for _, name := range f.Names() {
		require.Contains(t, rows, name+", ms")
		require.Contains(t, rows, name+", CPU ms")
	}
	require.Contains(t, rows, "live hour, 507 series × 80 samples: memory, MB")
	require.Contains(t, rows, "live hour, 507 series × 80 samples: dashboard mix, 8 clients, CPU ms per query")
}
