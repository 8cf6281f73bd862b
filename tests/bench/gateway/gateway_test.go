package gateway

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

func TestRoundTrips(t *testing.T) {
	at := func(begun, ended int64) span { return span{time.UnixMilli(begun), time.UnixMilli(ended)} }
	for _, tc := range []struct {
		times []span
		want  int
	}{
		{nil, 0},
		{[]span{at(0, 10)}, 1},
		{[]span{at(0, 10), at(1, 11), at(2, 12)}, 1},
		{[]span{at(20, 30), at(0, 10), at(10, 20)}, 3},
		{[]span{at(0, 11), at(10, 20)}, 2}, // it was counted late
		{[]span{at(0, 100), at(10, 20), at(30, 40)}, 2},
	} {
		require.Equal(t, tc.want, roundTrips(tc.times), "%v", tc.times)
	}
}

// program is versitygw, which the go command builds if necessary.
func program(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "tool", "-C", "../../..", "-modfile=tests/tools/go.mod", "-n", "versitygw").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// TestGateway: a store in the bucket works through the proxy, whose requests are counted and
// delayed.
func TestGateway(t *testing.T) {
	g, err := Program{GatewayBin: program(t)}.Start(t.Context(), filepath.Join(t.TempDir(), "gateway"))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Stop()) }()
	store, err := storeurl.Open(t.Context(), g.URL())
	require.NoError(t, err)
	g.Count()
	_, err = store.Put(t.Context(), "a/b", strings.NewReader("text"), objstore.Condition{})
	require.NoError(t, err)
	g.line.mu.Lock()
	g.line.wait() // the client has its answer sooner than a busy machine notes the end of the request
	g.line.mu.Unlock()
	const delay = 50 * time.Millisecond
	g.Delay(delay)
	begun := time.Now()
	body, o, err := store.Get(t.Context(), "a/b", 0, -1)
	require.NoError(t, err)
	require.NoError(t, body.Close())
	require.EqualValues(t, 4, o.Size)
	require.GreaterOrEqual(t, time.Since(begun), delay)
	requests, trips := g.Count()
	require.Equal(t, []int{2, 2}, []int{requests, trips})

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Program{GatewayBin: "absent"}.Start(cancelled, filepath.Join(t.TempDir(), "gateway"))
	require.ErrorContains(t, err, "find versitygw")
	resp, err := http.Get("http://" + g.addr + "/bench/a/b")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "without a signature")
}
