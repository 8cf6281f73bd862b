package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

func TestVariables(t *testing.T) {
	t.Setenv("PROMLAKE_LISTEN", "127.0.0.1:1")
	t.Setenv("PROMLAKE_STORE", "s3://bucket")
	t.Setenv("PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD", "30d")
	t.Setenv("PROMLAKE_COMPACTOR_TENANT_RETENTION", "team-a=1w,team-b=0")
	c := newCLI()
	k, err := flags.NewParser(program, description, c)
	require.NoError(t, err)
	_, err = k.Parse(nil)
	require.NoError(t, err)

	const day = 24 * time.Hour
	want := newCLI()
	want.Process.Listen, want.Process.Store, want.Compact.Retention = "127.0.0.1:1", "s3://bucket", 30*day
	want.Compact.TenantRetention = map[string]time.Duration{"team-a": 7 * day, "team-b": 0}
	require.Equal(t, want, c)
}
