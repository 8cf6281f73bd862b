package ingest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// TestRandomRequests sends random requests through the handler, and compares the store's contents
// with the result of upstream's decoder.
func TestRandomRequests(t *testing.T) {
	for _, mode := range modes {
		t.Run("mode="+string(mode), func(t *testing.T) { testRandomRequests(t, mode) })
	}
}

func testRandomRequests(t *testing.T, mode Mode) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		l := calmIn(t, mode)
		want := map[string]map[string]string{} // the last sample of each time, by kind and series
		for i := range 15 {
			version := protocols[rng.IntN(2)]
			items := randomItems(rng)
			w := l.send(version, items)
			require.Less(t, w.Code, 500)
			l.tick()
			samples, err := remotewritetest.Upstream(version, encode(t, version, items))
			require.NoError(t, err, i)
			for of, ss := range samples {
				put(want, of)
				for _, s := range ss {
					want[of][strings.Fields(s)[0]] = s
				}
			}
		}
		got := map[string]map[string]string{}
		for name, c := range l.read(anonymous) {
			for of, ss := range map[string][]string{remotewritetest.FloatsOf + name: c.Floats, remotewritetest.HistsOf + name: c.Hists} {
				for _, s := range ss {
					put(got, of)
					got[of][strings.Fields(s)[0]] = s
				}
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}
