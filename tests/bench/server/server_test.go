package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
)

// The test binary is also the server under test: fake <mode> <addr> <dir>.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "fake" {
		fake(os.Args[2], os.Args[3], os.Args[4])
	}
	os.Exit(m.Run())
}

func fake(mode, addr, dir string) {
	if mode == "dies" {
		fmt.Fprintln(os.Stderr, "no such luck")
		os.Exit(3)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		if err := os.WriteFile(filepath.Join(dir, "flushed"), nil, 0o600); err != nil {
			os.Exit(4)
		}
		os.Exit(0)
	}()
	polls := 0
	err := http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if polls++; polls < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else if mode == "quits" {
			os.Exit(0)
		}
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(5)
}

func fakeSpec(t *testing.T, mode string) server.Spec {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return server.Spec{
		Name: "fake", Binary: self, ReadyPath: "/ready", WritePath: "/write", Files: map[string]string{"settings": "x"},
		Args: func(addr, dir string) []string { return []string{"fake", mode, addr, dir} },
	}
}

func TestStartAndStop(t *testing.T) {
	dir := t.TempDir()
	p, err := server.Start(t.Context(), fakeSpec(t, "works"), dir)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "settings"))
	require.True(t, strings.HasPrefix(p.WriteURL(), "http://127.0.0.1:"), p.WriteURL())
	require.True(t, strings.HasSuffix(p.WriteURL(), "/write"), p.WriteURL())
	_, err = proc.Read(p.PID())
	require.NoError(t, err)
	require.NoError(t, p.Stop())
	require.FileExists(t, filepath.Join(dir, "flushed"), "it was asked, not killed")
	require.ErrorContains(t, p.Stop(), "had ended before")
}

func TestStartFails(t *testing.T) {
	for mode, want := range map[string]string{"dies": "no such luck", "quits": "exit status 0"} {
		t.Run(mode, func(t *testing.T) {
			_, err := server.Start(t.Context(), fakeSpec(t, mode), t.TempDir())
			require.ErrorIs(t, err, server.ErrNotReady)
			require.ErrorContains(t, err, want)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dir := t.TempDir()
		_, err := server.Start(ctx, fakeSpec(t, "works"), dir)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("no program", func(t *testing.T) {
		spec := fakeSpec(t, "works")
		spec.Binary = filepath.Join(t.TempDir(), "absent")
		_, err := server.Start(t.Context(), spec, t.TempDir())
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestSpecs(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "usr", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "prometheus"), nil, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "victoria-metrics"), nil, 0o600))
	specs := server.Specs(filepath.Join(dir, "absent"), dir)
	require.Len(t, specs, 3)
	require.Equal(t, server.Promlake, specs[0].Name)
	require.ErrorIs(t, specs[0].Installed(), os.ErrNotExist)
	require.Equal(t, server.VictoriaMetrics, specs[1].Name)
	require.ErrorContains(t, specs[1].Installed(), "is not a program")
	require.Equal(t, server.Prometheus, specs[2].Name)
	require.NoError(t, specs[2].Installed())
	require.Equal(t, []string{"serve", "--listen", "127.0.0.1:1", "--store", "file:///d/store"}, specs[0].Args("127.0.0.1:1", "/d"))
}
