package admission_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// place is where a test writes documents.
type place struct {
	setting string
	write   func(text string)
	remove  func()
}

func places(t *testing.T, store *memstore.Store) map[string]place {
	path := filepath.Join(t.TempDir(), "runtime.yaml")
	return map[string]place{
		"file": {path, func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }, func() { require.NoError(t, os.Remove(path)) }},
		"object": {
			admission.InStore, func(text string) {
				_, err := store.Put(t.Context(), admission.ObjectKey, strings.NewReader(text), objstore.Condition{})
				require.NoError(t, err)
			},
			func() { require.NoError(t, store.Delete(t.Context(), admission.ObjectKey)) },
		},
	}
}

// TestReload: a change counts at the first request after the period; what is broken or missing
// keeps the last document.
func TestReload(t *testing.T) {
	gets := 0
	store := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Get {
			gets++
		}
		return memstore.Fault{}
	}})
	for name, p := range places(t, store) {
		t.Run(name, func(t *testing.T) {
			now := time.UnixMilli(1_700_000_000_000)
			reg, log := prometheus.NewRegistry(), &bytes.Buffer{}
			open := func() (*admission.Runtime, error) {
				return admission.New(t.Context(), admission.Settings{File: p.setting, Period: 10 * time.Second}, store, settings.Default[admission.Limits](),
					reg, slog.New(slog.NewTextHandler(log, nil)), func() time.Time { return now })
			}
			_, err := open()
			require.ErrorContains(t, err, "read runtime configuration: ", "it must be there when the process starts")
			reg = prometheus.NewRegistry()
			p.write("overrides: {a: {ingestion_rate: no}}")
			_, err = open()
			require.ErrorContains(t, err, "runtime configuration: ")
			reg = prometheus.NewRegistry()
			p.write("overrides: {a: {ingestion_rate: 1}}")
			r, err := open()
			require.NoError(t, err)
			require.True(t, r.Overriding())
			rate := func() float64 { return r.Current(t.Context()).Of("a").IngestionRate }
			first := r.Current(t.Context()).Of("a")
			require.InDelta(t, 1, rate(), 0)

			p.write("overrides: {a: {ingestion_rate: 2}}")
			now = now.Add(10*time.Second - 1)
			require.InDelta(t, 1, rate(), 0, "the period is not over")
			now = now.Add(1)
			require.InDelta(t, 2, rate(), 0)
			require.NotSame(t, first, r.Current(t.Context()).Of("a"))

			bad := func() {
				now = now.Add(10 * time.Second)
				require.InDelta(t, 2, rate(), 0)
				now = now.Add(10 * time.Second)
				require.InDelta(t, 2, rate(), 0)
			}
			p.write("overrides: {a: {ingestion_rate: -2}}")
			bad()
			p.remove()
			bad()
			require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "a failure that lasts is logged once: %s", log)
			require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
				# HELP promlake_runtime_config_last_reload_successful 1 if the runtime configuration could be read and was valid when it was read last.
				# TYPE promlake_runtime_config_last_reload_successful gauge
				promlake_runtime_config_last_reload_successful 0
				# HELP promlake_runtime_config_reads_total Reads of the runtime configuration by result: changed, unchanged or failed.
				# TYPE promlake_runtime_config_reads_total counter
				promlake_runtime_config_reads_total{result="changed"} 2
				promlake_runtime_config_reads_total{result="failed"} 4
			`), "promlake_runtime_config_last_reload_successful", "promlake_runtime_config_reads_total"))

			p.write("overrides: {a: {ingestion_rate: 2}}")
			now = now.Add(10 * time.Second)
			require.InDelta(t, 2, rate(), 0)
			now = now.Add(10 * time.Second)
			require.InDelta(t, 2, rate(), 0)
			now = now.Add(-time.Hour) // a clock that is set back
			require.InDelta(t, 2, rate(), 0)
			p.write("")
			now = now.Add(10 * time.Second)
			require.Zero(t, rate())
		})
	}
	require.Positive(t, gets)
}

// TestWithoutADocument: nothing is read.
func TestWithoutADocument(t *testing.T) {
	store := memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault { return memstore.Fault{Err: errors.New("asked")} }})
	r, err := admission.New(context.Background(), admission.Settings{}, store, settings.Default[admission.Limits](), prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	require.False(t, r.Overriding())
	require.Zero(t, r.Current(t.Context()).Of("a").IngestionRate)
}

// TestOneRegistry: a process may have two, such as a function that evaluates rules: one for
// queries, and one, without a document, for what it writes. They share their metrics.
func TestOneRegistry(t *testing.T) {
	store, reg := memstore.New(memstore.Settings{}), prometheus.NewRegistry()
	_, err := store.Put(t.Context(), admission.ObjectKey, strings.NewReader("overrides: {a: {}}"), objstore.Condition{})
	require.NoError(t, err)
	for _, file := range []string{admission.InStore, ""} {
		_, err := admission.New(t.Context(), admission.Settings{File: file}, store, settings.Default[admission.Limits](), reg, slog.New(slog.DiscardHandler), time.Now)
		require.NoError(t, err)
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
		# HELP promlake_runtime_config_tenants Tenants with limits of their own.
		# TYPE promlake_runtime_config_tenants gauge
		promlake_runtime_config_tenants 1
	`), "promlake_runtime_config_tenants"))
}
