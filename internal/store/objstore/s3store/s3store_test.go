package s3store

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
)

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"bucket":     {},
		"prefix":     {Bucket: "b", Prefix: "a//b", Region: "r"},
		"endpoint":   {Bucket: "b", Endpoint: "localhost:9000"},
		"access key": {Bucket: "b", AccessKey: "a"},
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

func TestPartSize(t *testing.T) {
	const mib = 1 << 20
	assert.EqualValues(t, 16*mib, partSize(17*mib))
	assert.EqualValues(t, 16*mib, partSize(maxParts*16*mib))
	big := partSize(maxParts*16*mib + 1)
	assert.EqualValues(t, 16*mib+1, big)
	assert.LessOrEqual(t, (maxParts*16*mib+1+big-1)/big, int64(maxParts))
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

// TestKMSKey: every request that creates an object names the key, those of parts do not.
func TestKMSKey(t *testing.T) {
	var mu sync.Mutex
	keys := map[string]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		query := r.URL.Query()
		request := r.Method + " " + slices.Sorted(maps.Keys(query))[0]
		mu.Lock()
		defer mu.Unlock()
		keys[request] = r.Header.Get("X-Amz-Server-Side-Encryption") + " " + r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")
		w.Header().Set("ETag", `"e"`)
		switch request {
		case "POST uploads":
			_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
		case "POST uploadId":
			_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
		}
	}))
	defer srv.Close()
	s, err := New(t.Context(), Config{Bucket: "b", Endpoint: srv.URL, PathStyle: true, AccessKey: "a", SecretKey: "s", KMSKey: "alias/k"})
	require.NoError(t, err)
	for _, body := range []string{"small", strings.Repeat("x", partBytes+1)} {
		_, err = s.Put(t.Context(), "k", strings.NewReader(body), objstore.Condition{})
		require.NoError(t, err)
	}
	assert.Equal(t, map[string]string{"PUT x-id": "aws:kms alias/k", "POST uploads": "aws:kms alias/k", "PUT partNumber": " ", "POST uploadId": " "}, keys)
}

// TestCertificateAuthority: AWS_CA_BUNDLE names the authority of an endpoint.
func TestCertificateAuthority(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	srv.StartTLS()
	defer srv.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	require.NoError(t, os.WriteFile(bundle, certificate, 0o600))
	for _, named := range []string{"", bundle} {
		t.Setenv("AWS_CA_BUNDLE", named)
		s, err := New(t.Context(), Config{Bucket: "b", Endpoint: srv.URL, PathStyle: true, AccessKey: "a", SecretKey: "s", Policy: remote.Policy{MaxAttempts: 1}})
		require.NoError(t, err)
		_, _, err = objstore.ReadAll(t.Context(), s, "k")
		if named == "" {
			require.ErrorContains(t, err, "unknown authority")
			continue
		}
		require.NoError(t, err)
	}
}
