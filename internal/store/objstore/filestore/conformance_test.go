package filestore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Store {
		s, err := filestore.New(t.TempDir())
		require.NoError(t, err)
		return s
	})
}

func TestFoldersComeAndGo(t *testing.T) {
	s, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	storetest.NeighbourChurn(t, s)
	var keys []string
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	assert.Equal(t, []string{"a/b/c/0", "a/b/c/1", "a/b/c/2", "a/b/c/3"}, keys)
}
