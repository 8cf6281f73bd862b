package gcsstore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	"github.com/promlake/promlake/tests/support/cloudtest"
)

func TestLocation(t *testing.T) {
	for url, want := range map[string]string{
		"gs://bucket/a/b/":         "gs://bucket/a/b/",
		"gs://bucket?account=lake": "",
		"gs://":                    "",
	} {
		got, err := storeurl.Location(url)
		assert.Equal(t, want, got, url)
		assert.Equal(t, want == "", err != nil, "%s: %v", url, err)
	}
	_, err := storeurl.Open(t.Context(), "gs://bucket?region=x")
	require.ErrorContains(t, err, `unknown parameter "region", want endpoint`)
}

func TestURL(t *testing.T) {
	cloudtest.Check(t, "gs://"+cloudtest.Bucket(t, cloudtest.Google(t))+"/p")
}
