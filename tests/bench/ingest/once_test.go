package ingest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
)

// The test binary is also the server under test: fake <addr> <file that every body is appended to>.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "fake" {
		fmt.Fprintln(os.Stderr, fake(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func fake(addr, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(f, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
}

func fakeSpec(t *testing.T, args func(addr, dir string) []string) server.Spec {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return server.Spec{Name: "fake", Binary: self, ReadyPath: "/ready", WritePath: "/write", Args: args}
}

func oneHost(t *testing.T) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(&capture.Capture{Times: []int64{1, 2}, Series: []capture.Series{
		{Labels: labels.FromStrings("__name__", "x_total"), Values: []float64{1, 2}},
	}}, 1)
	require.NoError(t, err)
	return f
}

func TestOnce(t *testing.T) {
	work := t.TempDir()
	spec := fakeSpec(t, func(addr, dir string) []string { return []string{"fake", addr, filepath.Join(dir, "data")} })
	r, err := (&Flags{WorkDir: work}).once(t.Context(), spec, oneHost(t), load.Settings{Rounds: 5})
	require.NoError(t, err)
	require.Equal(t, int64(5), r.Report.Samples)
	require.NotNil(t, r.Report.Server)
	require.Positive(t, r.DiskBytes)
	left, err := os.ReadDir(work)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOnceKeepsTheFilesOfAFailure(t *testing.T) {
	work := t.TempDir()
	spec := fakeSpec(t, func(addr, dir string) []string { return []string{"fake", addr, filepath.Join(dir, "absent", "data")} })
	_, err := (&Flags{WorkDir: work}).once(t.Context(), spec, oneHost(t), load.Settings{Rounds: 5})
	require.ErrorIs(t, err, server.ErrNotReady)
	left, err2 := os.ReadDir(work)
	require.NoError(t, err2)
	require.Len(t, left, 1)
	require.ErrorContains(t, err, left[0].Name())
}
