package storeurl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/s3store"
	"github.com/promlake/promlake/tests/support/s3test"
)

func TestDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	require.NoError(t, err)
	abs := t.TempDir()
	for url, want := range map[string]string{
		"file://" + abs + "/a":  abs + "/a",
		abs + "/b":              abs + "/b",
		"file://./c":            wd + "/c",
		"file://../" + "d":      filepath.Dir(wd) + "/d",
		"./e":                   wd + "/e",
		"f/g":                   wd + "/f/g",
		"file://" + abs + "/h?": abs + "/h?", // a name, not parameters
	} {
		s, err := Open(t.Context(), url)
		require.NoError(t, err, url)
		local, ok := s.(objstore.Local)
		require.True(t, ok, url)
		assert.Equal(t, filepath.Join(want, "k"), local.LocalPath("k"), url)
		assert.DirExists(t, want)
	}
}

func TestLocation(t *testing.T) {
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	require.NoError(t, err)
	for url, want := range map[string]string{
		"file:///var/lib/x": "file:///var/lib/x/", "/var/lib/x/": "file:///var/lib/x/", "file://./data": "file://" + wd + "/data/", "file:///": "file:///",
		"s3://bucket": "s3://bucket/", "s3://bucket/a/b/?endpoint=http://localhost&secret_key=s": "s3://bucket/a/b/",
	} {
		got, err := Location(url)
		require.NoError(t, err, url)
		assert.Equal(t, want, got, url)
	}
	for _, url := range []string{"gs://bucket", "s3://", "s3:///x", "s3://b?x=1"} {
		_, err := Location(url)
		assert.Error(t, err, url)
	}
}

func TestParseS3(t *testing.T) {
	for url, want := range map[string]s3store.Config{
		"bucket":                  {Bucket: "bucket"},
		"bucket/":                 {Bucket: "bucket"},
		"bucket/a/b":              {Bucket: "bucket", Prefix: "a/b"},
		"bucket/a%20b":            {Bucket: "bucket", Prefix: "a b"},
		"bucket?region=eu-west-3": {Bucket: "bucket", Region: "eu-west-3"},
		"bucket?path_style=true":  {Bucket: "bucket", PathStyle: true},
		"bucket?kms_key=k":        {Bucket: "bucket", KMSKey: "k"},
		"bucket/p?endpoint=http://127.0.0.1:9000":                    {Bucket: "bucket", Prefix: "p", Endpoint: "http://127.0.0.1:9000", PathStyle: true},
		"bucket?endpoint=http%3A%2F%2Fh%3A1&path_style=false":        {Bucket: "bucket", Endpoint: "http://h:1"},
		"bucket?endpoint=https://h&access_key=a&secret_key=b%2Bc%3D": {Bucket: "bucket", Endpoint: "https://h", PathStyle: true, AccessKey: "a", SecretKey: "b+c="},
	} {
		bucket, _, err := parse("s3", url)
		require.NoError(t, err, url)
		got, err := configS3(bucket)
		require.NoError(t, err, url)
		assert.Equal(t, want, got, url)
	}
}

func TestBadURLs(t *testing.T) {
	for url, want := range map[string]string{
		"":                                  "names no directory",
		"file://":                           "names no directory",
		"gs://bucket":                       "built without gs://, which promlake has",
		"hdfs://bucket":                     `unknown scheme "hdfs", want file, s3`,
		"s3://":                             "names no bucket",
		"s3:///prefix":                      "names no bucket",
		"s3://b?regoin=x":                   `unknown parameter "regoin", want region`,
		"s3://b?path_style=maybe":           `path_style: want true or false, got "maybe"`,
		"s3://b?region=x&region=y":          "region is given 2 times",
		"s3://b?region=%zz":                 "the parameters are not of the form",
		"s3://b/%zz":                        "read prefix",
		"s3://b/a//b?region=x":              "prefix",
		"s3://b?endpoint=localhost:9000":    "endpoint",
		"s3://b?region=x&access_key=onlyme": "access key, secret key: want both or none",
	} {
		_, err := Open(t.Context(), url)
		assert.ErrorContains(t, err, want, url)
	}
}

func TestErrorsKeepSecrets(t *testing.T) {
	for _, bad := range []string{"&nonsense=1", "&endpoint=nowhere", "&path_style=x", "&x=%zz", "&secret_key=again"} {
		_, err := Open(t.Context(), "s3://bucket?access_key=id&secret_key=hush"+bad)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hush", bad)
	}
}

func TestS3(t *testing.T) {
	g := s3test.Start(t)
	s, err := Open(t.Context(), g.StoreURL(t))
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "k", strings.NewReader("x"), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	_, o, err := s.Get(t.Context(), "k", 0, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 1, o.Size)
	_, local := s.(objstore.Local)
	assert.False(t, local)
}

func TestExists(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, good := range []string{"file://" + dir, dir, "s3://bucket/prefix"} {
		require.NoError(t, Exists(good), good)
	}
	for _, bad := range []string{"file://" + dir + "/missing", dir + "/missing", "file://" + file, "file://"} {
		require.Error(t, Exists(bad), bad)
	}
	require.NoDirExists(t, filepath.Join(dir, "missing"))
}
