// Package s3test gives tests an S3 endpoint of their own: a versitygw gateway over a temporary directory, on loopback.
//
// The gateway changes the working directory of its process and allows one instance per process, so it runs in a child: the
// test binary starts itself, and the init function of this package makes a gateway of the copy before any test runs.
package s3test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/oklog/ulid/v2"
)

const (
	region    = "us-east-1"
	accessKey = "s3test-access"
	secretKey = "s3test-secret"

	startTries   = 5
	startTimeout = 20 * time.Second
	stopTimeout  = 10 * time.Second
)

// Gateway is a running S3 server.
type Gateway struct {
	Endpoint  string // http://127.0.0.1:port
	Region    string
	AccessKey string
	SecretKey string
}

// Start starts a gateway without buckets that ends with the test.
func Start(t testing.TB) *Gateway {
	t.Helper()
	var err error
	for range startTries { // another process may take the port between its choice and its use
		var g *Gateway
		if g, err = start(t); err == nil {
			return g
		}
	}
	t.Fatalf("start S3 gateway: %v", err)
	return nil
}

// Bucket creates a bucket with a name that none had before and returns the name.
func (g *Gateway) Bucket(t testing.TB) string {
	t.Helper()
	name := "test-" + strings.ToLower(ulid.Make().String())
	if _, err := g.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	return name
}

// StoreURL creates a bucket and returns its URL as storeurl.Open understands it, credentials included.
func (g *Gateway) StoreURL(t testing.TB) string {
	t.Helper()
	q := url.Values{
		"endpoint":   {g.Endpoint},
		"region":     {g.Region},
		"access_key": {g.AccessKey},
		"secret_key": {g.SecretKey},
	}
	return "s3://" + g.Bucket(t) + "?" + q.Encode()
}

// Client returns an S3 client of the gateway, for what a test wants to do behind a store's back.
func (g *Gateway) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(g.Endpoint),
		Region:       g.Region,
		Credentials:  credentials.NewStaticCredentialsProvider(g.AccessKey, g.SecretKey, ""),
		UsePathStyle: true,
	})
}

func start(t testing.TB) (*Gateway, error) {
	data, sidecar := t.TempDir(), t.TempDir() // before the Cleanup below, so that they are removed after it
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find test binary: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start test binary: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what went wrong stands on its standard error
		close(exited)
	}()
	t.Cleanup(func() { stop(t, cmd, stdin, exited) })
	if err := json.NewEncoder(stdin).Encode(childConfig{addr, data, sidecar}); err != nil {
		return nil, fmt.Errorf("configure gateway: %w", err)
	}
	if err := await(addr, exited); err != nil {
		return nil, err
	}
	return &Gateway{Endpoint: "http://" + addr, Region: region, AccessKey: accessKey, SecretKey: secretKey}, nil
}

// await waits until somebody listens at addr.
func await(addr string, exited <-chan struct{}) error {
	deadline := time.After(startTimeout)
	for {
		if conn, err := net.Dial("tcp", addr); err == nil {
			return conn.Close()
		}
		select {
		case <-exited:
			return errors.New("gateway exited")
		case <-deadline:
			return fmt.Errorf("gateway does not listen after %s", startTimeout)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func stop(t testing.TB, cmd *exec.Cmd, stdin io.Closer, exited <-chan struct{}) {
	_ = stdin.Close() // the child ends at the end of its input; a child that ended already has closed it
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		t.Logf("S3 gateway did not end within %s: killing it", stopTimeout)
		_ = cmd.Process.Kill()
		<-exited
	}
}

func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	return addr, nil
}
