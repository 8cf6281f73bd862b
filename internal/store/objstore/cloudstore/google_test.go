package cloudstore

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

func serve(t *testing.T, h http.HandlerFunc) objstore.Store {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	s, err := Google(t.Context(), storeurl.Bucket{Name: "b", Params: map[string]string{"endpoint": srv.URL}})
	require.NoError(t, err)
	return s
}

// TestLostAnswer: the answer of the first upload is lost, and the second one is refused because of
// the first.
func TestLostAnswerOfGoogle(t *testing.T) {
	var uploads []string
	token := ""
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost {
			_ = json.NewEncoder(w).Encode(map[string]any{
				"name": "k", "size": "4", "generation": "17", "timeCreated": "2026-01-02T03:04:05.678Z", "metadata": map[string]string{"promlake-write": token},
			})
			return
		}
		uploads = append(uploads, r.URL.Path+" "+r.URL.Query().Get("ifGenerationMatch"))
		if len(uploads) == 1 {
			token = string(regexp.MustCompile(`promlake-write":"(.*?)"`).FindSubmatch(body)[1])
			panic(http.ErrAbortHandler)
		}
		http.Error(w, `{"error":{"code":412}}`, http.StatusPreconditionFailed)
	})
	etag, err := s.Put(t.Context(), "k", strings.NewReader("mine"), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	assert.Equal(t, "17", etag)
	assert.Equal(t, []string{"/upload/storage/v1/b/b/o 0", "/upload/storage/v1/b/b/o 0"}, uploads)
}

// TestAnswers: a missing bucket is no missing object, and the bytes of an object that do not have
// its checksum are damaged.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		is, not error
	}{
		"object":   {404, "No such object: b/k", objstore.ErrNotFound, objstore.ErrPrecondition},
		"bucket":   {404, "The specified bucket does not exist.", nil, objstore.ErrNotFound},
		"denied":   {403, "denied", nil, objstore.ErrNotFound},
		"range":    {416, "", objstore.ErrRange, objstore.ErrNotFound},
		"checksum": {200, "0123456789", checksum.ErrDamaged, objstore.ErrNotFound},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Goog-Generation", "1")
			w.Header().Set("X-Goog-Hash", "crc32c=AAAAAA==,md5=x")
			w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		_, _, err := objstore.ReadAll(t.Context(), s, "k")
		require.Error(t, err, name)
		if c.is != nil {
			require.ErrorIs(t, err, c.is, name)
		}
		require.NotErrorIs(t, err, c.not, name)
	}
}
