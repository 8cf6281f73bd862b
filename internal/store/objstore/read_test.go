package objstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestReadInto reads objects into memory that is too small, large enough, and none.
func TestReadInto(t *testing.T) {
	s := memstore.New(memstore.Settings{})
	for k, text := range map[string]string{"long": "0123456789", "short": "abc", "empty": ""} {
		_, err := s.Put(t.Context(), k, strings.NewReader(text), objstore.Condition{})
		require.NoError(t, err)
	}
	var memory []byte
	for _, tc := range []struct {
		key, want string
		shared    bool
	}{{"short", "abc", false}, {"long", "0123456789", false}, {"short", "abc", true}, {"empty", "", true}, {"long", "0123456789", true}} {
		got, o, err := objstore.ReadInto(t.Context(), s, tc.key, memory)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(got))
		require.Equal(t, int64(len(tc.want)), o.Size)
		if tc.shared {
			require.Same(t, &memory[:1][0], &got[:1][0])
		}
		memory = got
	}
	_, _, err := objstore.ReadInto(t.Context(), s, "absent", memory)
	require.ErrorIs(t, err, objstore.ErrNotFound)
}
