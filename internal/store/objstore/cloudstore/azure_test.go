package cloudstore

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// TestLostAnswer: the answer of the first upload is lost, and the second one is refused because of
// the first. Azure has other errors for absent and for other blobs.
func TestLostAnswerOfAzure(t *testing.T) {
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	for cond, code := range map[objstore.Condition]string{{IfAbsent: true}: "BlobAlreadyExists", {IfMatch: `"0x1"`}: "ConditionNotMet"} {
		uploads, token := 0, ""
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
			if r.Method != http.MethodPut {
				w.Header().Set("ETag", `"0x2"`)
				w.Header().Set("X-Ms-Meta-Promlake_write", token)
				return
			}
			if uploads++; uploads == 1 {
				token = r.Header.Get("X-Ms-Meta-Promlake_write")
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("X-Ms-Error-Code", code)
			w.WriteHeader(map[bool]int{true: http.StatusConflict, false: http.StatusPreconditionFailed}[cond.IfAbsent])
		}))
		defer srv.Close()
		s, err := Azure(t.Context(), storeurl.Bucket{Name: "c", Params: map[string]string{"account": "a", "endpoint": srv.URL}})
		require.NoError(t, err)
		etag, err := s.Put(t.Context(), "k", strings.NewReader("mine"), cond)
		require.NoError(t, err, code)
		assert.Equal(t, `"0x2"`, etag)
		assert.Equal(t, 2, uploads)
		assert.NotEmpty(t, token)
	}
}

// TestDots: no request names a blob with a segment that ends with a dot.
func TestDots(t *testing.T) {
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	s, err := Azure(t.Context(), storeurl.Bucket{Name: "c", Params: map[string]string{"account": "a", "endpoint": "http://127.0.0.1:1"}})
	require.NoError(t, err)
	for _, key := range []string{"v1/a./x", "v1/a."} {
		_, err := s.Put(t.Context(), key, strings.NewReader("x"), objstore.Condition{})
		require.ErrorIs(t, err, objstore.ErrInvalidKey)
		_, _, err = s.Get(t.Context(), key, 0, -1)
		require.ErrorIs(t, err, objstore.ErrInvalidKey)
		require.ErrorIs(t, s.Delete(t.Context(), key), objstore.ErrInvalidKey)
	}
}

// TestErrorsKeepSignatures: the URLs of requests have the signature, errors do not.
func TestErrorsKeepSignatures(t *testing.T) {
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("AZURE_STORAGE_KEY", "")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2024-11-04&sig=hush")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Query().Get("sig") == "hush" {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "", http.StatusForbidden)
	}))
	defer srv.Close()
	client, err := azureClient(storeurl.Bucket{Name: "c", Params: map[string]string{"account": "a", "endpoint": srv.URL}})
	require.NoError(t, err)
	s, err := remote.New(blobs{client}, "", remote.Policy{MaxAttempts: 2, MinBackoff: 1, MaxBackoff: 1})
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "k", strings.NewReader("x"), objstore.Condition{})
	require.ErrorContains(t, err, "EOF")
	assert.NotContains(t, err.Error(), "hush")
	_, _, err = s.Get(t.Context(), "k", 0, -1)
	require.ErrorContains(t, err, "403")
	assert.NotContains(t, err.Error(), "hush")
}
