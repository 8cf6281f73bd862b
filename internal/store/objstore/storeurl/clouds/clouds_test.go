package clouds_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	_ "github.com/promlake/promlake/internal/store/objstore/storeurl/clouds"
	"github.com/promlake/promlake/tests/support/cloudtest"
)

func TestLocation(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	for url, want := range map[string]string{
		"gs://bucket/a/b/":            "gs://bucket/a/b/",
		"azblob://box/a?account=lake": "abfss://box@lake.dfs.core.windows.net/a/",
		"azblob://box":                "",
		"gs://bucket?account=lake":    "",
		"gs://":                       "",
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
func TestErrors(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("AZURE_STORAGE_KEY", "hush!")
	for url, want := range map[string]string{
		"gs://bucket?region=x":      `unknown parameter "region", want endpoint`,
		"azblob://box":              "AZURE_STORAGE_ACCOUNT",
		"azblob://box?account=lake": "AZURE_STORAGE_KEY: want base64",
		"azblob://":                 "names no bucket",
	} {
		_, err := storeurl.Open(t.Context(), url)
		require.ErrorContains(t, err, want, url)
		assert.NotContains(t, err.Error(), "hush", url)
	}
}

func TestGoogle(t *testing.T) {
	check(t, "gs://"+cloudtest.Bucket(t, cloudtest.Google(t))+"/p")
}

func TestAzure(t *testing.T) {
	endpoint := cloudtest.Azure(t)
	check(t, "azblob://"+cloudtest.Container(t, endpoint)+"/p?endpoint="+endpoint)
}

// check puts an object, and expects errors of a missing bucket.
func check(t *testing.T, url string) {
	t.Helper()
	s, err := storeurl.Open(t.Context(), url)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "k", strings.NewReader("x"), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	_, _, err = s.Get(t.Context(), "absent", 0, -1)
	require.ErrorIs(t, err, objstore.ErrNotFound)
	s, err = storeurl.Open(t.Context(), strings.Replace(url, "://", "://no-such-", 1))
	require.NoError(t, err)
	for _, err := range s.List(t.Context(), "", "") {
		require.Error(t, err)
	}
	_, err = s.Put(t.Context(), "k", strings.NewReader("x"), objstore.Condition{IfAbsent: true})
	require.Error(t, err)
	require.NotErrorIs(t, err, objstore.ErrPrecondition)
}
