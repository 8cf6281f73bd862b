package imports

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
)

// importVariable makes a process of the test promlake import.
const importVariable = "PROMLAKE_BENCH_IMPORT"

// promlake is the part of the program's grammar that the benchmark needs.
type promlake struct {
	Import struct {
		TSDB importTSDB `cmd:"" name:"tsdb"`
	} `cmd:""`
}

type importTSDB struct {
	importapp.TSDB
	Import importapp.Settings `embed:""`
}

// Run imports.
func (c *importTSDB) Run(ctx context.Context) error {
	_, err := importapp.Run(ctx, c.Import, c.TSDB, time.Now, nil)
	return err
}

func TestMain(m *testing.M) {
	if os.Getenv(importVariable) == "" {
		os.Exit(m.Run())
	}
	c := settings.Default[promlake]()
	os.Exit(flags.Main(context.Background(), "promlake", "", &c, os.Args[1:], flags.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

func small(t *testing.T) *Flags {
	t.Setenv(importVariable, "yes")
	binary, err := os.Executable()
	require.NoError(t, err)
	return &Flags{ServerBin: binary, Hosts: 1, Rounds: 600, Interval: time.Minute, Kills: 3, Queries: 100, Seed: 1, WorkDir: t.TempDir(), PromlakeArgs: []string{"--level=2h"}}
}

// TestImport is a small run of the whole proof.
func TestImport(t *testing.T) {
	r, err := small(t).measure(t.Context())
	require.NoError(t, err)
	require.Greater(t, r.source.content.Samples, int64(300_000))
	require.Equal(t, 3, r.source.Blocks)
	require.Positive(t, r.usage.CPU)
	require.Positive(t, r.usage.PeakRSS)
	require.Equal(t, 5, r.held.blocks, "ten hours")
	require.Positive(t, r.kills)
	require.Equal(t, 100, r.asked.Questions)
	require.Greater(t, r.asked.Answers, 50)
	require.Zero(t, r.asked.Different)
	var b bytes.Buffer
	require.NoError(t, r.publish(&b))
	require.Contains(t, b.String(), "samples missing or twice")
	r.asked.Different = 1
	require.ErrorIs(t, r.publish(&b), errDifferent)
}

// TestDifferencesAreFound: a sample that is missing, there twice or another one, and answers that are
// not those of the source.
func TestDifferencesAreFound(t *testing.T) {
	var want, got content
	want.add(1, 1000, 5)
	want.add(2, 1000, 5)
	got.add(2, 1000, 5)
	require.NotEqual(t, want, got)
	got.add(1, 1000, 5)
	require.Equal(t, want, got)
	got.add(1, 1000, 5)
	require.NotEqual(t, want, got)
	require.ErrorContains(t, held{content: got}.compare(&source{content: want}), "the store has 3 samples")

	f := small(t)
	c, err := capture.Open("")
	require.NoError(t, err)
	replay, err := fleet.NewReplay(c, fleet.ReplaySettings{Hosts: 1, Rounds: 301, Start: start, Interval: time.Minute})
	require.NoError(t, err)
	s := newSource(t.TempDir(), replay, 300)
	require.NoError(t, s.write(t.Context()))
	to, err := f.target(t.TempDir(), "store", s)
	require.NoError(t, err)
	_, ended, err := to.run(t.Context(), never)
	require.NoError(t, err)
	require.True(t, ended)
	blocks, err := filepath.Glob(filepath.Join(s.dir, "*"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(blocks[0]))
	store, err := filestore.New(to.store())
	require.NoError(t, err)
	var reports []string
	a, err := s.ask(t.Context(), store, 1, 20, func(text string) { reports = append(reports, text) })
	require.NoError(t, err)
	require.NotZero(t, a.Different)
	require.Len(t, reports, a.Different)

	to.args = []string{"--level=7h"}
	_, _, err = to.run(t.Context(), never)
	require.ErrorContains(t, err, "7h")
}
