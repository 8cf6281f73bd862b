package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/doctorapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestDoctor ends with 0 for a healthy store, with 1 for a damaged one, and with 0 once the damage
// is quarantined.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	body, _, err := segmenttest.Encode([]segment.Row{{Labels: labels.FromStrings("__name__", "up"), Floats: []segment.Float{{T: 1000, V: 1}}}}, nil)
	require.NoError(t, err)
	k := key.Segment{Tenant: "a", Window: key.WindowOf(1000), ID: ulid.MustNew(ulid.Timestamp(time.Now()), bytes.NewReader(make([]byte, 10)))}
	path := filepath.Join(dir, filepath.FromSlash(k.String()))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	write := func(b []byte) { require.NoError(t, os.WriteFile(path, b, 0o644)) }
	doctor := func(args ...string) (int, doctorapp.Report) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"doctor", "--store", "file://" + dir, "--json"}, args...), flags.Streams{Out: &out, Err: &errs})
		var r doctorapp.Report
		require.NoError(t, json.Unmarshal(out.Bytes(), &r), "%s %s", out.String(), errs.String())
		return code, r
	}
	write(body)
	code, r := doctor("--verify")
	require.Equal(t, 0, code, r.Text())
	body[60] ^= 1
	write(body)
	code, r = doctor("--verify", "--tenant", "a")
	require.Equal(t, 1, code)
	require.Equal(t, k.String(), r.Tenants[0].Damaged[0].Object)
	code, _ = doctor("--verify", "--quarantine")
	require.Equal(t, 0, code)
	kept, err := os.ReadFile(filepath.Join(dir, "quarantine", filepath.FromSlash(k.String())))
	require.NoError(t, err)
	require.Equal(t, body, kept)
}
