package auth_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/tests/support/secrettest"
)

func TestOpenSecret(t *testing.T) {
	for _, reference := range []string{"file:tokens.json", "file:/etc/promlake/tokens.json", "ssm:/promlake/prod/tokens"} {
		require.True(t, auth.IsReference(reference))
		from, err := auth.OpenSecret(reference)
		require.NoError(t, err)
		require.Equal(t, reference, from.String())
	}
	for _, text := range []string{"", "file:", "ssm:", "pl_hush", "s3://hush"} {
		require.False(t, auth.IsReference(text), text)
		_, err := auth.OpenSecret(text)
		require.EqualError(t, err, "secret: want file:PATH or ssm:NAME", "what may be a secret is not repeated")
	}
}

func TestSecretFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	_, err := auth.SecretFile(path).Read(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("hush"), 0o600))
	text, err := auth.SecretFile(path).Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hush", text)
	require.NoError(t, os.Truncate(path, auth.MaxSecretBytes+1))
	_, err = auth.SecretFile(path).Read(t.Context())
	require.ErrorContains(t, err, "1048577 bytes, at most 1048576 are allowed")
}

func TestSecretOf(t *testing.T) {
	text, err := auth.SecretOf("hush").Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hush", text)
	require.NotContains(t, auth.SecretOf("hush").String(), "hush")
}

func TestSecretParameter(t *testing.T) {
	ssm := secrettest.StartSSM(t)
	from, err := auth.OpenSecret("ssm:/promlake/test/tokens")
	require.NoError(t, err)
	require.Zero(t, ssm.Requests(), "nothing is asked before it is needed")

	_, err = from.Read(t.Context())
	require.ErrorContains(t, err, "read secret ssm:/promlake/test/tokens: ")
	require.ErrorContains(t, err, "ParameterNotFound")
	ssm.Put("/promlake/test/tokens", "hush")
	text, err := from.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hush", text)
	ssm.SetDown(true)
	_, err = from.Read(t.Context())
	require.ErrorContains(t, err, "status 500 of Systems Manager: InternalServerError: down")
	require.Equal(t, 3, ssm.Requests())
	ssm.SetDown(false)

	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	from, err = auth.OpenSecret("ssm:/promlake/test/tokens")
	require.NoError(t, err)
	_, err = from.Read(t.Context())
	require.ErrorContains(t, err, "status 400 of Systems Manager: InvalidSignatureException: want a good signature")
}

func TestParameterWithoutARegion(t *testing.T) {
	secrettest.StartSSM(t)
	t.Setenv("AWS_REGION", "")
	from, err := auth.OpenSecret("ssm:x")
	require.NoError(t, err)
	_, err = from.Read(t.Context())
	require.ErrorContains(t, err, "no region, set AWS_REGION")
}

func TestParameterThatCannotBeReached(t *testing.T) {
	secrettest.StartSSM(t)
	t.Setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1")
	from, err := auth.OpenSecret("ssm:x")
	require.NoError(t, err)
	_, err = from.Read(t.Context())
	require.ErrorContains(t, err, "read secret ssm:x: request to AWS: ")
}
