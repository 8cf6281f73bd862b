package compact

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

var errFault = errors.New("injected")

// play is a small life: parts, a 2h block, a split day, a deletion, late data, garbage. Readers
// look after each step; fault may break it.
func play(l *lake, fault bool) {
	s := l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2, MaxJobSamples: 30}, OrphanGrace: 20 * time.Minute}, 2)
	run := func(hhmm string) {
		l.at(hhmm)
		for range 4 { // a fault ends a cycle early; the next ones go on
			if err := s.UntilIdle(l.t.Context(), nil, nil); err != nil {
				require.True(l.t, fault, err)
				require.ErrorIs(l.t, err, errFault)
			}
			l.check("t")
			if len(plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t"))) == 0 {
				return
			}
		}
		require.Fail(l.t, "not idle at "+hhmm)
	}
	quiet := func(f func()) { // faults are for compaction alone
		was := l.quiet
		l.quiet = true
		f()
		l.quiet = was
	}
	quiet(func() {
		l.at("0:10").write("t", seriesRows(11, 1, clock("0:05")))
		l.at("0:11").write("t", seriesRows(11, 2, clock("0:06")))
	})
	run("0:30")
	quiet(func() { l.at("1:11").write("t", seriesRows(12, 3, clock("0:05"), clock("1:06"))) })
	run("2:15")
	run("24:15")
	quiet(func() {
		l.at("24:20").delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m1"}, "0:00", "1:00")
		l.at("24:21").write("t", seriesRows(3, 9, clock("0:05")))
	})
	run("24:40")
	// Each step from superseded to forgotten waits for the deletion delay.
	for _, at := range []string{"25:00", "25:30", "26:00", "26:30", "27:00", "27:30", "28:00"} {
		run(at)
	}
}

// leftovers are the segments and blocks that are in the store and not live.
func (l *lake) leftovers(tenant string) (out []string) {
	live := map[string]bool{}
	snap := l.snapshot(tenant)
	for _, s := range snap.Segments {
		live[s.String()] = true
	}
	for _, k := range l.mem.Keys() {
		known := live[k] || strings.HasPrefix(k, "v1/"+tenant+"/manifest")
		for _, b := range snap.Blocks {
			known = known || strings.HasPrefix(k, b.Key(tenant).Prefix())
		}
		if !known {
			out = append(out, k)
		}
	}
	return out
}

// TestFaults fails every operation of the store, one in each run: before it has an effect, after,
// and in the middle. No reader ever notices, and in the end nothing is left but what is live.
func TestFaults(t *testing.T) {
	calls := 0
	l := newLake(t)
	l.each = func(memstore.Call) memstore.Fault { calls++; return memstore.Fault{} }
	play(l, false)
	require.Empty(t, l.leftovers("t"))
	require.Greater(t, calls, 100)
	for n := range calls {
		when := memstore.When(n % 3) // Before, After, Midway
		t.Run(fmt.Sprintf("call=%d/when=%d", n, when), func(t *testing.T) {
			l, at := newLake(t), 0
			l.each = func(c memstore.Call) memstore.Fault {
				if at++; at-1 != n {
					return memstore.Fault{}
				}
				return memstore.Fault{Err: errFault, When: when}
			}
			play(l, true)
			require.Empty(t, l.leftovers("t"))
		})
	}
}

// TestUnlistedTenantsAreLogged: a cycle that cannot list the tenants says why in the log, because
// the program that repeats cycles drops their errors.
func TestUnlistedTenantsAreLogged(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	var text strings.Builder
	s.log = slog.New(slog.NewTextHandler(&text, nil))
	l.each = func(memstore.Call) memstore.Fault { return memstore.Fault{Err: errFault} }
	_, err := s.Cycle(t.Context())
	require.ErrorIs(t, err, errFault)
	require.Contains(t, text.String(), errFault.Error())
}
