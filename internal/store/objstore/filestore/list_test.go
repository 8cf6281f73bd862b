package filestore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

// TestListAllocatesLittle: a listing allocates for an object what it returns, and what the system
// calls for its folder and its file make, but not its path.
func TestListAllocatesLittle(t *testing.T) {
	s, err := New(t.TempDir())
	require.NoError(t, err)
	const objects = 100
	for i := range objects {
		_, err := s.Put(t.Context(), fmt.Sprintf("folder/%03d", i), strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}
	n := 0
	allocated := testing.AllocsPerRun(10, func() {
		for o, err := range s.List(t.Context(), "folder/", "") {
			require.NoError(t, err)
			require.EqualValues(t, 1, o.Size)
			n++
		}
	})
	require.Equal(t, 11*objects, n)
	require.Less(t, allocated/objects, 6.5)
}
