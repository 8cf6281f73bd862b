package functions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/s3test"
)

// TestOverS3 writes, compacts and queries over an S3 server: each process opens its client at its
// first request.
func TestOverS3(t *testing.T) {
	s := start(t, "PROMLAKE_STORE="+s3test.Start(t).StoreURL(t), "PROMLAKE_INGEST_MODE=direct")
	for range 2 { // a repeated write succeeds
		for _, name := range []string{"http-api-write-v1", "http-api-write-v2"} {
			a := ask(t, s.ingest, recorded(t, name))
			require.Equal(t, 204, a.Status, a.Body)
		}
	}
	s.requireAnswers(t)
	_, err := s.compact.Invoke(t.Context(), recorded(t, "eventbridge-scheduler").payload(t))
	require.NoError(t, err)
	s.requireAnswers(t)
	for _, c := range append(s.ingest.ColdStarts(), s.query.ColdStarts()...) {
		t.Logf("ready after %s, answered after %s", c.Ready, c.Answer)
	}
}
