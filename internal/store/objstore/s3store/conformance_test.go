package s3store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/s3store"
	"github.com/promlake/promlake/tests/support/s3test"
	"github.com/promlake/promlake/tests/support/storetest"
)

func configOf(t *testing.T, g *s3test.Gateway) s3store.Config {
	return s3store.Config{
		Bucket: g.Bucket(t), Region: g.Region, Endpoint: g.Endpoint, PathStyle: true, AccessKey: g.AccessKey, SecretKey: g.SecretKey,
	}
}

func open(t *testing.T, c s3store.Config) *s3store.Store {
	t.Helper()
	s, err := s3store.New(t.Context(), c)
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	g := s3test.Start(t)
	storetest.Run(t, func(t *testing.T) objstore.Store { return open(t, configOf(t, g)) })
}

// TestConformanceAsOnAWS takes the endpoint from the environment, so that the store treats the
// gateway as AWS and sends trailing checksums, and uses a prefix.
func TestConformanceAsOnAWS(t *testing.T) {
	g := s3test.Start(t)
	t.Setenv("AWS_ENDPOINT_URL_S3", g.Endpoint)
	storetest.Run(t, func(t *testing.T) objstore.Store {
		c := configOf(t, g)
		c.Endpoint, c.Prefix = "", "/some/prefix/"
		return open(t, c)
	})
}
