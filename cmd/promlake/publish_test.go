package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/publish"
)

func TestPublishCommand(t *testing.T) {
	store := filled(t)
	code, out, errs := command("publish", "--store", store)
	require.Zero(t, code, errs)
	require.Contains(t, squeeze(out), "anonymous samples 0 0 0 none: no block to publish yet")
	code, _, errs = command("publish", "--store", store, "--tenant", "other")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "the store has no blocks of tenant other")

	code, _, errs = command("compact", "--store", store, "--until-idle", "--now", "2100-01-01T00:00:00Z")
	require.Zero(t, code, errs)
	code, out, errs = command("publish", "--store", store, "--json")
	require.Zero(t, code, errs)
	var reports []publish.Report
	require.NoError(t, json.Unmarshal([]byte(out), &reports))
	require.Len(t, reports, 2)
	for i, tenant := range []string{"anonymous", "other"} {
		require.Equal(t, tenant, reports[i].Tenant)
		require.Equal(t, int64(3), reports[i].Tables[0].Rows)
		samples := reports[i].Tables[1]
		require.Equal(t, int64(6), samples.Rows)
		require.Equal(t, store+"/v1/"+tenant+"/iceberg/samples/metadata/v1.metadata.json", samples.Metadata)
		require.FileExists(t, strings.TrimPrefix(samples.Metadata, "file://"))
	}

	code, out, errs = command("publish", "--store", store, "--tenant", "other", "--location", "s3a://bucket/prefix")
	require.Zero(t, code, errs)
	require.Contains(t, squeeze(out), "other samples 1 6 2 s3a://bucket/prefix/v1/other/iceberg/samples/metadata/v2.metadata.json")
	b, err := os.ReadFile(strings.TrimPrefix(store, "file://") + "/v1/other/iceberg/samples/metadata/v2.metadata.json")
	require.NoError(t, err)
	require.Contains(t, string(b), `"location":"s3a://bucket/prefix/v1/other/iceberg/samples"`)

	for _, tc := range []struct{ flag, want string }{
		{"--location=bucket/prefix", `location: want a URI such as s3a://bucket/prefix, got "bucket/prefix"`},
		{"--tenant=a/b", "publish: "},
		{"--store=" + store + "x", "no such file or directory"},
	} {
		code, _, errs := command("publish", "--store", store, tc.flag)
		require.Equal(t, 1, code, tc.flag)
		require.Contains(t, errs, tc.want)
	}
}
