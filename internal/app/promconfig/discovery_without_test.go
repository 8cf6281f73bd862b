//go:build no_kubernetes_sd

package promconfig

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWithoutKubernetes: the program that make run builds says what it does not have, and which
// program has it.
func TestWithoutKubernetes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte("scrape_configs: [{job_name: x, kubernetes_sd_configs: [{role: pod}]}]"), 0o600))
	_, err := Load(file, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "this program has no kubernetes_sd_configs; build it with make build")
}
