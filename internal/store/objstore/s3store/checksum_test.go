package s3store_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/store/objstore/s3store"
)

// TestResponseChecksum: an object whose bytes do not match S3's checksum in the answer is an error.
func TestResponseChecksum(t *testing.T) {
	const stored = "the bytes of an object"
	for _, tc := range []struct {
		name, sent string
		damaged    bool
	}{{"whole", stored, false}, {"flipped", "the bytes of an objekt", true}} {
		t.Run(tc.name, func(t *testing.T) {
			asked := ""
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.Header.Get("X-Amz-Checksum-Mode")
				sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(stored)))
				w.Header().Set("X-Amz-Checksum-Crc32", base64.StdEncoding.EncodeToString(sum))
				w.Header().Set("ETag", `"e"`)
				w.Header().Set("Content-Length", strconv.Itoa(len(tc.sent)))
				// the test fails anyway if the answer is truncated
				_, _ = io.WriteString(w, tc.sent)
			}))
			defer srv.Close()
			s, err := s3store.New(t.Context(), s3store.Config{Bucket: "b", Region: "r", Endpoint: srv.URL, PathStyle: true, AccessKey: "a", SecretKey: "s"})
			require.NoError(t, err)
			r, _, err := s.Get(t.Context(), "k", 0, -1)
			require.NoError(t, err)
			_, err = io.ReadFull(r, make([]byte, len(tc.sent)))
			_, again := r.Read(make([]byte, 1))
			require.NoError(t, r.Close())
			require.Equal(t, "ENABLED", asked)
			if tc.damaged {
				require.ErrorIs(t, err, checksum.ErrDamaged)
				require.ErrorIs(t, again, checksum.ErrDamaged)
			} else {
				require.NoError(t, err)
				require.ErrorIs(t, again, io.EOF)
			}
		})
	}
}
