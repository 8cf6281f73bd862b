package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
)

// webFile writes a certificate for 127.0.0.1 and a file of --web.config.file beside it. It returns
// the path of the file, and a client's configuration that has the certificate and trusts it.
func webFile(t *testing.T, text string) (path string, client *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	cert := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&block), 0o600))
	}
	path = filepath.Join(dir, "web.yml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path, &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, Certificates: []tls.Certificate{cert}}
}

// serveWith runs queries behind a file of --web.config.file. It returns the URL, the address of
// Flight SQL, and what ends the server and waits for its error.
func serveWith(t *testing.T, change func(*process.Settings), flight bool) (url, rpc string, end func() error) {
	t.Helper()
	s := process.DefaultSettings()
	s.Listen, s.Store = "127.0.0.1:0", "file://"+t.TempDir()
	change(&s)
	builders := []process.Builder{queryapp.New(settings.Default[queryapp.Settings]())}
	set := settings.Default[app.FlightSettings]()
	set.Listen = "127.0.0.1:0"
	f := app.NewFlight(set)
	if flight {
		builders = append(builders, f.Build)
	}
	log, done := &lines{}, make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- process.Run(ctx, s, slog.New(slog.NewJSONHandler(log, nil)), builders...) }()
	end = func() error {
		cancel()
		return <-done
	}
	for deadline := time.Now().Add(5 * time.Minute); url == "" && len(done) == 0; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%s", log)
		url = servingURL(log.String())
	}
	if flight && url != "" {
		rpc = f.Addr()
	}
	return url, rpc, end
}

// TestTLS: HTTP and Flight SQL have TLS and ask for certificates of clients.
func TestTLS(t *testing.T) {
	path, config := webFile(t, "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_auth_type: RequireAnyClientCert}\n")
	url, rpc, end := serveWith(t, func(s *process.Settings) { s.WebFile = path }, true)
	require.Regexp(t, "^https://", url)
	client := func(c *tls.Config) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}}
	}
	for range 3 { // a connection that was idle is used again
		resp, err := client(config).Get(url + "/api/v1/status/buildinfo")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, 2, resp.ProtoMajor)
		require.NoError(t, resp.Body.Close())
	}
	// Without a write, which might fail before the alert is read.
	c, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{RootCAs: config.RootCAs})
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "certificate required")
	_ = c.Close() // the server has closed it
	resp, err := http.Get("http" + url[len("https"):])
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode) // net/http tells that it speaks TLS
	require.NoError(t, resp.Body.Close())

	for creds, want := range map[credentials.TransportCredentials]bool{
		credentials.NewTLS(config): true, credentials.NewTLS(&tls.Config{RootCAs: config.RootCAs}): false, insecure.NewCredentials(): false,
	} {
		c, err := flightsql.NewClient(rpc, nil, nil, grpc.WithTransportCredentials(creds))
		require.NoError(t, err)
		_, err = c.Execute(t.Context(), "SELECT 1")
		require.Equal(t, want, err == nil, "%v", err)
		require.NoError(t, c.Close())
	}
	require.NoError(t, end())
}

// TestUsers: requests need a user's name and password; what does not know users is refused.
func TestUsers(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	require.NoError(t, err)
	path, _ := webFile(t, "basic_auth_users: {ann: "+string(hash)+"}\n")
	url, _, end := serveWith(t, func(s *process.Settings) { s.WebFile = path }, false)
	require.Regexp(t, "^http://", url)
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "secret": http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/status/buildinfo", nil)
		require.NoError(t, err)
		if password != "" {
			req.SetBasicAuth("ann", password)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.Equal(t, want, resp.StatusCode, password)
		require.NoError(t, resp.Body.Close())
	}
	require.NoError(t, end())

	_, _, end = serveWith(t, func(s *process.Settings) { s.WebFile = path }, true)
	require.ErrorContains(t, end(), "--flight.listen-address: Flight SQL does not know the users")
	_, _, end = serveWith(t, func(s *process.Settings) { s.WebFile, s.Auth.Tokens = path, "file:/nonexistent" }, false)
	require.ErrorContains(t, end(), "--web.config.file has users and --auth.tokens is set")
	bad, _ := webFile(t, "tls_server_config: {cert_file: none.pem, key_file: key.pem}\n")
	_, _, end = serveWith(t, func(s *process.Settings) { s.WebFile = bad }, false)
	require.ErrorContains(t, end(), "read --web.config.file: "+bad)
}
