// Package cloudtest starts test servers of Google Cloud Storage and Azure Blob Storage. The target
// test-stores of the Makefile installs them and names them in the environment.
package cloudtest

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	"github.com/promlake/promlake/tests/support/servertest"
)

// azuriteKey is the key of azurite's only account, which its documentation names.
const azuriteKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

func program(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s names no program: make test-stores installs it", variable)
	}
	return path
}

// Google starts fake-gcs-server, names it in the environment for clients, and returns its URL.
func Google(t *testing.T) (endpoint string) {
	t.Helper()
	path := program(t, "PROMLAKE_FAKE_GCS_SERVER")
	addr := servertest.Start(t, func(addr string) []string {
		host, port, _ := net.SplitHostPort(addr)
		return []string{path, "-scheme", "http", "-host", host, "-port", port, "-public-host", addr, "-external-url", "http://" + addr, "-backend", "memory", "-log-level", "error"}
	})
	t.Setenv("STORAGE_EMULATOR_HOST", addr)
	return "http://" + addr
}

// Bucket creates a bucket of the server at endpoint, with a new name.
func Bucket(t testing.TB, endpoint string) string {
	t.Helper()
	name := newName()
	res, err := http.Post(endpoint+"/storage/v1/b", "application/json", bytes.NewReader([]byte(`{"name":"`+name+`"}`)))
	if err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("create bucket: %s, %v", res.Status, err)
	}
	return name
}

// Azure starts azurite, names it in the environment for clients, and returns the URL of its
// account.
func Azure(t *testing.T) (endpoint string) {
	t.Helper()
	path := program(t, "PROMLAKE_AZURITE")
	addr := servertest.Start(t, func(addr string) []string {
		host, port, _ := net.SplitHostPort(addr)
		return []string{path, "--blobHost", host, "--blobPort", port, "--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"}
	})
	endpoint = "http://" + addr + "/devstoreaccount1"
	t.Setenv("AZURE_STORAGE_ACCOUNT", "devstoreaccount1")
	t.Setenv("AZURE_STORAGE_KEY", azuriteKey)
	return endpoint
}

// Container creates a container of the account at endpoint, with a new name.
func Container(t testing.TB, endpoint string) string {
	t.Helper()
	name := newName()
	credential, err := container.NewSharedKeyCredential("devstoreaccount1", azuriteKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+name, credential, nil)
	if err == nil {
		_, err = client.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatalf("create container: %v", err)
	}
	return name
}

func newName() string { return "test-" + strings.ToLower(ulid.Make().String()) }

// Check opens the store of a URL, puts an object, and expects errors of a missing bucket.
func Check(t *testing.T, url string) {
	t.Helper()
	s, err := storeurl.Open(t.Context(), url)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "k", strings.NewReader("x"), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	_, _, err = s.Get(t.Context(), "absent", 0, -1)
	require.ErrorIs(t, err, objstore.ErrNotFound)
	s, err = storeurl.Open(t.Context(), strings.Replace(url, "://", "://no-such-", 1))
	require.NoError(t, err)
	for _, err := range s.List(t.Context(), "", "") {
		require.Error(t, err)
	}
	_, err = s.Put(t.Context(), "k", strings.NewReader("x"), objstore.Condition{IfAbsent: true})
	require.Error(t, err)
	require.NotErrorIs(t, err, objstore.ErrPrecondition)
}
