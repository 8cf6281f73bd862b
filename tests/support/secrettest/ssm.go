// Package secrettest provides a fake of AWS Systems Manager.
package secrettest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// SSM answers GetParameter over HTTP. It is safe for concurrent use.
type SSM struct {
	mu       sync.Mutex
	values   map[string]string
	down     bool
	requests int
}

// StartSSM starts an SSM without parameters, and configures the AWS SDK through the test's
// environment to use it.
func StartSSM(t *testing.T) *SSM {
	t.Helper()
	s := &SSM{values: map[string]string{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SSM": srv.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": identity.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY": identity.SecretAccessKey, "AWS_SESSION_TOKEN": identity.SessionToken,
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	return s
}

// identity is the only identity with access.
var identity = aws.Credentials{AccessKeyID: "AKIDTEST", SecretAccessKey: "hush", SessionToken: "session"}

// signed reports whether the request has identity's signature.
func signed(r *http.Request, body []byte) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	same, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return false
	}
	for _, name := range []string{"Content-Type", "X-Amz-Target"} {
		same.Header.Set(name, r.Header.Get(name))
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(r.Context(), identity, same, hex.EncodeToString(sum[:]), "ssm", "us-east-1", at)
	return err == nil && same.Header.Get("Authorization") == r.Header.Get("Authorization")
}

// Put sets a parameter.
func (s *SSM) Put(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = value
}

// SetDown makes all requests fail, or succeed again.
func (s *SSM) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Requests returns the number of requests so far.
func (s *SSM) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// ServeHTTP implements http.Handler by the protocol awsJson1_1.
func (s *SSM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	var in struct {
		Name           string
		WithDecryption bool
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	value, ok := s.values[in.Name]
	switch {
	case !signed(r, body):
		answer(w, http.StatusBadRequest, map[string]string{"__type": "InvalidSignatureException", "message": "want a good signature"})
	case err != nil || r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParameter" || !in.WithDecryption:
		answer(w, http.StatusBadRequest, map[string]string{"__type": "ValidationException", "message": "want GetParameter with decryption"})
	case s.down:
		answer(w, http.StatusInternalServerError, map[string]string{"__type": "InternalServerError", "message": "down"})
	case !ok:
		answer(w, http.StatusBadRequest, map[string]string{"__type": "ParameterNotFound"})
	default:
		answer(w, http.StatusOK, map[string]any{"Parameter": map[string]any{"Name": in.Name, "Type": "SecureString", "Value": value, "Version": 1}})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	// Errors mean that the client closed the connection.
	_ = json.NewEncoder(w).Encode(body)
}
