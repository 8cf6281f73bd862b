package s3store

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

func TestConfig(t *testing.T) {
	c, err := Config{Bucket: "b", Prefix: "/p/q/"}.normalize()
	require.NoError(t, err)
	assert.Equal(t, Config{
		Bucket: "b", Prefix: "p/q", MaxAttempts: 8, MinBackoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second, Timeout: time.Minute,
		MultipartAbove: 16 << 20, PartSize: 16 << 20, PartConcurrency: 4, IdleConnections: 128,
	}, c)
	for want, c := range map[string]Config{
		"bucket":           {},
		"prefix":           {Bucket: "b", Prefix: "a//b"},
		"endpoint":         {Bucket: "b", Endpoint: "localhost:9000"},
		"access key":       {Bucket: "b", AccessKey: "a"},
		"part size":        {Bucket: "b", PartSize: 1000},
		"max attempts":     {Bucket: "b", MaxAttempts: -1},
		"min backoff":      {Bucket: "b", MinBackoff: -1},
		"timeout":          {Bucket: "b", Timeout: -1},
		"multipart above":  {Bucket: "b", MultipartAbove: -1},
		"part concurrency": {Bucket: "b", PartConcurrency: -1},
		"idle connections": {Bucket: "b", IdleConnections: -1},
	} {
		_, err := New(t.Context(), c)
		assert.ErrorContains(t, err, want)
	}
}

func TestRegion(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	_, err := New(t.Context(), Config{Bucket: "b"})
	require.ErrorContains(t, err, "region")
	for want, c := range map[string]Config{
		"us-east-1": {Bucket: "b", Endpoint: "http://127.0.0.1:1"},
		"eu-west-3": {Bucket: "b", Region: "eu-west-3"},
	} {
		s, err := New(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, want, s.client.Options().Region)
	}
}

func TestPrefixCountsForKeyLength(t *testing.T) {
	s, err := New(t.Context(), Config{Bucket: "b", Prefix: "pp", Region: "r", Endpoint: "http://127.0.0.1:1"})
	require.NoError(t, err)
	key := string(bytes.Repeat([]byte("a/"), objstore.MaxKeyLen/2-1)) + "b"
	require.Len(t, key, objstore.MaxKeyLen-1)
	require.ErrorIs(t, s.Delete(t.Context(), key), objstore.ErrInvalidKey)
}

func TestRangeHeader(t *testing.T) {
	for _, c := range []struct {
		offset, length int64
		want           string
	}{
		{0, -1, ""}, {0, 1, "bytes=0-0"}, {5, 10, "bytes=5-14"}, {5, -1, "bytes=5-"}, {-5, -1, "bytes=-5"}, {-5, 2, "bytes=-5"},
		{5, math.MaxInt64, "bytes=5-9223372036854775806"},
		{math.MaxInt64, math.MaxInt64, "bytes=9223372036854775807-9223372036854775807"},
		{math.MinInt64, -1, "bytes=-9223372036854775807"},
	} {
		assert.Equal(t, c.want, aws.ToString(rangeHeader(c.offset, c.length)), "%+v", c)
	}
}

func TestParseContentRange(t *testing.T) {
	first, size, err := parseContentRange("bytes 3-9/20")
	require.NoError(t, err)
	assert.Equal(t, [2]int64{3, 20}, [2]int64{first, size})
	for _, v := range []string{"", "bytes", "bytes */20", "bytes 3-9/*", "bytes 3/20", "bytes x-9/20", "bytes 20-29/20", "bytes -3-9/20"} {
		_, _, err := parseContentRange(v)
		assert.Error(t, err, v)
	}
}

func TestPartSize(t *testing.T) {
	const mib = 1 << 20
	assert.EqualValues(t, 16*mib, partSize(17*mib, 16*mib))
	assert.EqualValues(t, 16*mib, partSize(maxParts*16*mib, 16*mib))
	big := partSize(maxParts*16*mib+1, 16*mib)
	assert.EqualValues(t, 16*mib+1, big)
	assert.LessOrEqual(t, (maxParts*16*mib+1+big-1)/big, int64(maxParts))
}

func TestBackoff(t *testing.T) {
	b := backoff{min: time.Millisecond, max: 100 * time.Millisecond}
	for n, top := range map[int]time.Duration{1: 1, 2: 2, 5: 16, 8: 100, 5000: 100} {
		for range 100 {
			d := b.delay(n)
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, top*time.Millisecond, "attempt %d", n)
		}
	}
}

func TestSpeakable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a/ö/日": "a/ö/日", "a\x00b": "a", "a\nb": "a", "ab\xff": "ab", "日\xe6\x97": "日", "\uffff": "", "a\uFFFDb": "a\uFFFDb",
	} {
		assert.Equal(t, want, representable(in), "%q", in)
	}
}

// TestServerWithoutRanges: HTTP allows a server to ignore ranges and send the whole object.
func TestServerWithoutRanges(t *testing.T) {
	const object = "0123456789"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"e"`)
		_, _ = io.WriteString(w, object)
	}))
	defer srv.Close()
	s, err := New(t.Context(), Config{Bucket: "b", Endpoint: srv.URL, PathStyle: true, AccessKey: "a", SecretKey: "s"})
	require.NoError(t, err)
	for _, c := range [][2]int64{{0, -1}, {3, 4}, {3, -1}, {-4, -1}, {-4, 2}, {0, 100}} {
		r, o, err := s.Get(t.Context(), "k", c[0], c[1])
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		start, n, err := objstore.Span(c[0], c[1], int64(len(object)))
		require.NoError(t, err)
		assert.Equal(t, object[start:start+n], string(got), "%v", c)
		assert.EqualValues(t, len(object), o.Size)
	}
	_, _, err = s.Get(t.Context(), "k", 10, 1)
	require.ErrorIs(t, err, objstore.ErrRange)
}

// TestDisorderedListing: directory buckets of S3 list in no order, which objstore.Store does not
// allow.
func TestDisorderedListing(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		_, _ = fmt.Fprint(w, `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>`,
			`<Contents><Key>p/b</Key></Contents><Contents><Key>p/folder/</Key></Contents><Contents><Key>p/a</Key></Contents></ListBucketResult>`)
	}))
	defer srv.Close()
	s, err := New(t.Context(), Config{Bucket: "b", Prefix: "p", Endpoint: srv.URL, PathStyle: true, AccessKey: "a", SecretKey: "s"})
	require.NoError(t, err)
	var keys []string
	var last error
	for o, err := range s.List(t.Context(), "", "") {
		if last = err; err == nil {
			keys = append(keys, o.Key)
		}
	}
	assert.Equal(t, []string{"b"}, keys, "a folder marker is no key")
	require.ErrorContains(t, last, `lists "a" after "b"`)
}
