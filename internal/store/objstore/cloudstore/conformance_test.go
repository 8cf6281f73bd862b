package cloudstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/cloudstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	"github.com/promlake/promlake/tests/support/cloudtest"
	"github.com/promlake/promlake/tests/support/storetest"
)

func TestConformanceOfGoogle(t *testing.T) {
	endpoint := cloudtest.Google(t)
	open := func(t *testing.T) objstore.Store {
		s, err := cloudstore.Google(t.Context(), storeurl.Bucket{Name: cloudtest.Bucket(t, endpoint), Prefix: "/some/prefix/"})
		require.NoError(t, err)
		return s
	}
	require.NoError(t, probe.Check(t.Context(), open(t)))
	storetest.Run(t, open)
}

func TestConformanceOfAzure(t *testing.T) {
	endpoint := cloudtest.Azure(t)
	open := func(t *testing.T) objstore.Store {
		s, err := cloudstore.Azure(t.Context(), storeurl.Bucket{Name: cloudtest.Container(t, endpoint), Prefix: "/some/prefix/", Params: map[string]string{"endpoint": endpoint}})
		require.NoError(t, err)
		return s
	}
	require.NoError(t, probe.Check(t.Context(), open(t)))
	// Azurite sorts by UTF-16; the order of such keys is not documented for Azure. Promlake's keys
	// are ASCII.
	storetest.Run(t, open, "ListOrderOfPlanes")
}
