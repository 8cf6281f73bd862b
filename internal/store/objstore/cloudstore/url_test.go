package cloudstore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	"github.com/promlake/promlake/tests/support/cloudtest"
)

func TestLocationOfGoogle(t *testing.T) {
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

func TestURLOfGoogle(t *testing.T) {
	cloudtest.Check(t, "gs://"+cloudtest.Bucket(t, cloudtest.Google(t))+"/p")
}

func TestLocationOfAzure(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	for url, want := range map[string]string{
		"azblob://box/a?account=lake": "abfss://box@lake.dfs.core.windows.net/a/",
		"azblob://box":                "",
	} {
		got, err := storeurl.Location(url)
		assert.Equal(t, want, got, url)
		assert.Equal(t, want == "", err != nil, "%s: %v", url, err)
	}
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol=https;AccountName=pond;AccountKey=a2V5;EndpointSuffix=core.windows.net")
	got, err := storeurl.Location("azblob://box")
	require.NoError(t, err)
	assert.Equal(t, "abfss://box@pond.dfs.core.windows.net/", got)
}

// TestErrors: a bad URL or environment is refused before a request, without its secrets.
func TestErrorsOfAzure(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("AZURE_STORAGE_KEY", "hush!")
	for url, want := range map[string]string{
		"azblob://box":              "AZURE_STORAGE_ACCOUNT",
		"azblob://box?account=lake": "AZURE_STORAGE_KEY: want base64",
		"azblob://":                 "names no bucket",
	} {
		_, err := storeurl.Open(t.Context(), url)
		require.ErrorContains(t, err, want, url)
		assert.NotContains(t, err.Error(), "hush", url)
	}
}

func TestURLOfAzure(t *testing.T) {
	endpoint := cloudtest.Azure(t)
	cloudtest.Check(t, "azblob://"+cloudtest.Container(t, endpoint)+"/p?endpoint="+endpoint)
}
