// Package s3test starts an S3 endpoint for a test: a versitygw process on loopback over a temporary
// directory. The module in tests/tools pins versitygw; the go command builds it.
package s3test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/tests/support/freeaddr"
)

const (
	region    = "us-east-1"
	accessKey = "s3test-access"
	secretKey = "s3test-secret"

	startTries   = 5
	startTimeout = 2 * time.Minute
	stopTimeout  = 10 * time.Second
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
	var err error
	for range startTries { // another process may take the port between its selection and its use
		var g *Gateway
		if g, err = start(t); err == nil {
			return g
		}
	}
	t.Fatalf("start S3 gateway: %v", err)
	return nil
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

// supervisor is a shell script that runs versitygw and kills it at the end of the script's standard
// input, so also when the test process dies.
const supervisor = `exec 3<&0; "$@" & gateway=$!; (cat <&3 >/dev/null; kill -9 $gateway) & wait $gateway`

func start(t testing.TB) (*Gateway, error) {
	// before the Cleanup below, so that they are removed after it
	data, sidecar := t.TempDir(), t.TempDir()
	addr, err := freeaddr.Pick()
	if err != nil {
		return nil, err
	}
	program, err := versitygw()
	if err != nil {
		return nil, err
	}
	args := []string{
		"-c", supervisor, "versitygw", program, "--port", addr, "--access", accessKey, "--secret", secretKey,
		"--region", region, "--keep-alive", "--quiet", "posix",
	}
	if !keepsAttributes(data) {
		args = append(args, "--sidecar", sidecar)
	}
	cmd := exec.Command("sh", append(args, data)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start versitygw: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // versitygw writes the reason to standard error
		close(exited)
	}()
	t.Cleanup(func() { stop(t, cmd, stdin, exited) })
	if err := await(addr, exited); err != nil {
		return nil, err
	}
	return &Gateway{Endpoint: "http://" + addr, Region: region, AccessKey: accessKey, SecretKey: secretKey}, nil
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

// await waits until a process listens at addr.
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
	_ = stdin.Close() // ends the supervisor; fails if it has ended already
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		t.Logf("S3 gateway did not end within %s: killing it", stopTimeout)
		_ = cmd.Process.Kill()
		<-exited
	}
}
