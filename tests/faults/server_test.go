package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
)

// serverVariable holds the serverSettings, as JSON, of a process that is a server and no test.
const serverVariable = "PROMLAKE_FAULTS_SERVER"

// serverSettings are what the servers of a test differ in.
type serverSettings struct {
	Store         string // URL, by way of the proxy
	Dir           string // for temporary files
	Seed          uint64
	DeletionDelay time.Duration
}

const (
	flushTimeout = 10 * time.Second
	// settleDelay exceeds flushTimeout by more than a second, the resolution of the listing's
	// times.
	settleDelay = flushTimeout + 2*time.Second
	// wrong is how far a clock may be off.
	wrong = time.Hour
	// step is how far the clock of ingest jumps. Its groups wait by this clock, which time.Now's
	// monotonic reading protects from jumps in a real process.
	step = time.Second
)

func TestMain(m *testing.M) {
	text, isServer := os.LookupEnv(serverVariable)
	if !isServer {
		os.Exit(m.Run())
	}
	go func() { // the pipe ends with the test's process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs all stages as promlake serve does, each with a clock of its own that jumps. Merges and
// the collection of garbage begin within seconds.
func serve(text string) error {
	var s serverSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("read server settings: %w", err)
	}
	p := process.DefaultSettings()
	p.Listen, p.Store = "127.0.0.1:0", s.Store
	p.CheckStore = false // it does not repeat what fails
	in := ingest.DefaultSettings()
	in.FlushInterval, in.FlushTimeout, in.SettleDelay = 200*time.Millisecond, flushTimeout, settleDelay
	in.Limits.CreationGracePeriod = 3 * wrong
	q := settings.Default[queryapp.Settings]()
	q.Query.CacheDir, q.Query.Threads = filepath.Join(s.Dir, "cache"), 1
	q.Query.MaxStaleness = 0 // a write is to be seen at once
	q.Query.Timeout = s.DeletionDelay - time.Second
	q.Admin.Enabled = true
	c := compactapp.DefaultSettings()
	c.SettleDelay, c.WindowDelay, c.LateDelay, c.DeletionDelay = settleDelay, time.Second, time.Second, s.DeletionDelay
	c.MinPartSegments, c.MaxSources, c.MaxSegments, c.TempDir = 2, 3, 3, s.Dir
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	logger := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	return process.Run(context.Background(), p, logger,
		jumping(rng, step, ingestapp.New(nil, in)), jumping(rng, 2*wrong, queryapp.New(q)), jumping(rng, 2*wrong, compactapp.Background(nil, c, false, time.Second)))
}

// jumping gives a stage a clock that is off by up to wrong, and by another time every few seconds,
// within a span.
func jumping(rng *rand.Rand, span time.Duration, b process.Builder) process.Builder {
	c := &clock{rng: rand.New(rand.NewPCG(rng.Uint64(), 0)), span: span}
	c.least = time.Duration(rng.Int64N(int64(2*wrong-span+1))) - wrong
	return func(ctx context.Context, p process.Parts) (process.Stage, error) {
		p.Now = c.now
		return b(ctx, p)
	}
}

type clock struct {
	least, span time.Duration

	mu    sync.Mutex
	rng   *rand.Rand
	ahead time.Duration // between least and least+span
	until time.Time     // then it jumps
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.After(c.until) {
		c.ahead = c.least + time.Duration(c.rng.Int64N(int64(c.span)))
		c.until = now.Add(time.Duration(c.rng.Int64N(int64(5 * time.Second))))
	}
	return now.Round(0).Add(c.ahead) // without the monotonic reading, which does not jump
}
