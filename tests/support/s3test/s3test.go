// Package s3test starts an S3 endpoint for a test: a versitygw process on loopback over a temporary
// directory. The module in tests/tools pins versitygw; the go command builds it.
package s3test

import (
	"bytes"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/tests/support/servertest"
)

const (
	region    = "us-east-1"
	accessKey = "s3test-access"
	secretKey = "s3test-secret"
)

// Gateway is a running S3 server.
type Gateway struct {
	Endpoint  string // http://127.0.0.1:port
	Region    string
	AccessKey string
	SecretKey string
}

// Start starts a gateway without buckets. It ends with the test.
func Start(t testing.TB) *Gateway {
	t.Helper()
	data, sidecar := t.TempDir(), t.TempDir()
	program, err := versitygw()
	if err != nil {
		t.Fatalf("build S3 gateway: %v", err)
	}
	addr := servertest.Start(t, func(addr string) []string {
		args := []string{program, "--port", addr, "--access", accessKey, "--secret", secretKey, "--region", region, "--keep-alive", "--quiet", "posix"}
		if !keepsAttributes(data) {
			args = append(args, "--sidecar", sidecar)
		}
		return append(args, data)
	})
	return &Gateway{Endpoint: "http://" + addr, Region: region, AccessKey: accessKey, SecretKey: secretKey}
}

// Bucket creates a bucket with a new, unique name and returns the name.
func (g *Gateway) Bucket(t testing.TB) string {
	t.Helper()
	name := "test-" + strings.ToLower(ulid.Make().String())
	if _, err := g.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	return name
}

// StoreURL creates a bucket and returns its URL for storeurl.Open, including credentials.
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

// Client returns an S3 client of the gateway, for changes that bypass the store.
func (g *Gateway) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(g.Endpoint),
		Region:       g.Region,
		Credentials:  credentials.NewStaticCredentialsProvider(g.AccessKey, g.SecretKey, ""),
		UsePathStyle: true,
	})
}

// versitygw returns the path of the program in the go command's build cache; the go command builds
// it if necessary.
var versitygw = sync.OnceValues(func() (string, error) {
	module, err := output("go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	root := filepath.Dir(module)
	return output("go", "-C", root, "tool", "-modfile=tests/tools/go.mod", "-n", "versitygw")
})

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", cmd, err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// keepsAttributes reports whether the file system stores the extended attributes of objects'
// metadata; otherwise versitygw stores them in a separate directory.
func keepsAttributes(dir string) bool {
	return unix.Setxattr(dir, "user.probe", []byte("x"), 0) == nil
}
