package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
)

func TestNewRegistry(t *testing.T) {
	reg, err := telemetry.NewRegistry(telemetry.Build{Version: "1.2.3", Revision: "abc", GoVersion: "go1"})
	require.NoError(t, err)
	want := `
# HELP promlake_build_info Constant 1, labelled by the version, revision and Go version that Promlake was built from.
# TYPE promlake_build_info gauge
promlake_build_info{goversion="go1",revision="abc",version="1.2.3"} 1
`
	require.NoError(t, testutil.GatherAndCompare(reg, bytes.NewBufferString(want), "promlake_build_info"))
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total"} {
		n, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		require.Equal(t, 1, n, name)
	}
}

func TestReadBuild(t *testing.T) {
	b := telemetry.ReadBuild()
	require.Equal(t, "dev", b.Version)
	require.NotEmpty(t, b.Revision)
	require.Contains(t, b.String(), "promlake dev (revision ")
}

func TestNewLogger(t *testing.T) {
	var out bytes.Buffer
	l, err := telemetry.NewLogger(&out, telemetry.LogSettings{Level: "warn", Format: "json"})
	require.NoError(t, err)
	l.Info("quiet")
	require.Zero(t, out.Len(), "below the level")
	l.Warn("loud", slog.Int("n", 7))
	var rec map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &rec))
	require.Equal(t, "loud", rec["msg"])
	require.EqualValues(t, 7, rec["n"])

	out.Reset()
	l, err = telemetry.NewLogger(&out, settings.Default[telemetry.LogSettings]())
	require.NoError(t, err)
	l.Debug("quiet")
	l.Info("hello")
	require.Regexp(t, `^time=\S+ level=INFO msg=hello\n$`, out.String())
}

func TestLogSettingsValidate(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		s          telemetry.LogSettings
	}{
		{"defaults", "", settings.Default[telemetry.LogSettings]()},
		{"level", `log level "loud"`, telemetry.LogSettings{Level: "loud", Format: "text"}},
		{"format", `log format "xml"`, telemetry.LogSettings{Level: "info", Format: "xml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.s.Validate()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}
