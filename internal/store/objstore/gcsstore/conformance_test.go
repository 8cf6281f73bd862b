package gcsstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/gcsstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/tests/support/cloudtest"
	"github.com/promlake/promlake/tests/support/storetest"
)

func TestConformance(t *testing.T) {
	endpoint := cloudtest.Google(t)
	open := func(t *testing.T) objstore.Store {
		s, err := gcsstore.New(t.Context(), gcsstore.Config{Bucket: cloudtest.Bucket(t, endpoint), Prefix: "/some/prefix/"})
		require.NoError(t, err)
		return s
	}
	require.NoError(t, probe.Check(t.Context(), open(t)))
	storetest.Run(t, open)
}
