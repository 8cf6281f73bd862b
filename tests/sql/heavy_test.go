package sql

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/sql"
	"github.com/promlake/promlake/tests/support/laketest"
)

// peakMemory returns the most memory that the process has had since the last call, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	kb, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600))
	return kb << 10
}

// ofValues are aggregates that keep each distinct value in a small allocation of its own. Until the
// statement is interrupted, only the limit of the process bounds their memory: tests/e2e/test_sql.py.
var ofValues = regexp.MustCompile(`\b(histogram|mode)\(`)

// TestHeavySQL: statements that need more than any limit end with the error of a limit, within it,
// and the server answers afterwards. Most of them compute until the timeout; make soak lets them do
// so for longer.
func TestHeavySQL(t *testing.T) {
	const memory, spill = 64 << 20, 64 << 20
	timeout := 100 * time.Millisecond
	if laketest.Soak {
		timeout = 5 * time.Second
	}
	cache := t.TempDir()
	l := laketest.New(t, laketest.NewDir(t), query.Settings{
		CacheDir: cache,
		Timeout:  timeout, MaxConcurrency: 2, QueryMemoryBytes: memory, SpillBytes: spill, Threads: 2, SQL: sql.Limits{MaxRows: 10_000, MaxBytes: 1 << 20, MaxPlanBytes: 64 << 20},
	})
	laketest.WriteMixture(l, "a", laketest.RandomRows(rand.New(rand.NewPCG(41, 42))))
	srv := serve(l)
	text, err := os.ReadFile("testdata/heavy.sql")
	require.NoError(t, err)
	n := 0
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "-- ") {
			continue
		}
		n++
		before := peakMemory(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		code, body, err := askAs(ctx, srv, "a", "/api/v1/sql", url.Values{"query": {line}, "format": {"csv"}})
		cancel()
		require.NoError(t, err, line)
		switch code {
		case http.StatusServiceUnavailable:
			require.Contains(t, body, "--query.timeout", line)
		case http.StatusUnprocessableEntity:
			require.Regexp(t, "--(query.max-memory|query.max-subquery-steps|sql.max-rows|sql.max-result-bytes|sql.max-plan-bytes)", body, line)
		default:
			t.Errorf("%s\n%d %s", line, code, body)
		}
		if more := peakMemory(t) - before; !ofValues.MatchString(line) {
			require.Less(t, more, int64(8*memory), line)
		}
	}
	require.GreaterOrEqual(t, n, 40)
	var code int
	var body string
	for end := time.Now().Add(5 * time.Minute); code != http.StatusOK && time.Now().Before(end); { // a slow machine needs the timeout for this, too
		code, body, err = askAs(t.Context(), srv, "a", "/api/v1/sql", url.Values{"query": {"SELECT count(*) AS n FROM samples WHERE metric = 'm1'"}, "format": {"csv"}})
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusOK, code, body)
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() == "spill" {
			left, err := os.ReadDir(filepath.Join(cache, e.Name()))
			require.NoError(t, err)
			require.Empty(t, left, "spilled data of ended statements")
		}
	}
}

// TestWideSQL: what the values of a result with many columns take outside of DuckDB's memory counts
// against that of the process, as do elements of its lists, and no format encodes more of it once
// the statement has ended.
func TestWideSQL(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	budget := memory.New(256<<20, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, nil)
	var text strings.Builder
	text.WriteString("SELECT range")
	for i := range 4000 {
		fmt.Fprintf(&text, ", range + %d AS c%d", i, i)
	}
	few, many := text.String()+" FROM range(10)", text.String()+" FROM range(3000)"
	listed := "SELECT list(x) AS l FROM range(3000000) t(x)"
	for _, format := range []string{"json", "parquet"} {
		ctx, work, err := budget.Start(t.Context())
		require.NoError(t, err)
		var out laketest.Result
		require.NoError(t, l.SQL(ctx, query.Statement{Text: few, Format: format}, &out))
		err = l.SQL(ctx, query.Statement{Text: many, Format: format}, &out)
		require.ErrorIs(t, err, memory.ErrMemory, format)
		if err = l.SQL(ctx, query.Statement{Text: listed, Format: format}, &out); format == "parquet" {
			require.ErrorIs(t, err, memory.ErrMemory, "elements of a list")
		} else {
			require.NoError(t, err)
		}
		work.End()
		ended, end := context.WithCancel(t.Context())
		err = l.SQL(ended, query.Statement{Text: many, Format: format}, ending{end})
		require.ErrorIs(t, err, context.Canceled, format)
		end()
	}
}

// ending ends a statement at the first bytes of its result, and takes no more.
type ending struct{ end context.CancelFunc }

func (e ending) Write(p []byte) (int, error) {
	e.end()
	return len(p), nil
}

func (ending) Reset() bool { return false }

// TestSQLWithoutRoom: a statement is refused large allocations where the process has no room for
// them, with the error of the process, and runs once there is room.
func TestSQLWithoutRoom(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	budget := memory.New(1<<40, memory.Probe{Usage: func() int64 { return 1 << 30 }, Now: time.Now}, nil)
	ctx, work, err := budget.Start(t.Context())
	require.NoError(t, err)
	defer work.End()
	defer duck.Room(math.MaxInt64 / 2)
	large := query.Statement{Text: "SELECT len(list(x)) AS n FROM range(1000000) t(x)", Format: "csv"}
	var out laketest.Result
	duck.Room(1 << 20)
	err = l.SQL(ctx, large, &out)
	require.ErrorIs(t, err, memory.ErrMemory)
	require.ErrorContains(t, err, memory.Flag)
	require.NoError(t, l.SQL(ctx, query.Statement{Text: "SELECT 1 AS n", Format: "csv"}, &out))
	duck.Room(math.MaxInt64 / 2)
	out = laketest.Result{}
	require.NoError(t, l.SQL(ctx, large, &out))
	require.Equal(t, "n\n1000000\n", out.String())
}
