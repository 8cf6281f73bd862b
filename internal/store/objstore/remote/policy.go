package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithytime "github.com/aws/smithy-go/time"
)

// socketBuffer is the size in bytes of each connection's read and write buffers: large ones need
// fewer system calls per range.
const socketBuffer = 64 << 10

// Policy bounds attempts. Waits between them are uniformly random, "full jitter" in
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
type Policy struct {
	MaxAttempts            int           // of a request, and of a body without progress
	MinBackoff, MaxBackoff time.Duration // upper bounds of the first wait, which doubles, and of all
}

// DefaultPolicy is the policy of stores that are not configured otherwise.
var DefaultPolicy = Policy{MaxAttempts: 8, MinBackoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second}

// Delay returns the wait after the failed attempt n, counted from 1.
func (p Policy) Delay(n int) time.Duration {
	top := math.Min(float64(p.MaxBackoff), float64(p.MinBackoff)*math.Exp2(float64(n-1)))
	return time.Duration(rand.Float64() * top)
}

// Wait waits after the failed attempt n. It fails if ctx ends.
func (p Policy) Wait(ctx context.Context, n int) error {
	return smithytime.SleepWithContext(ctx, p.Delay(n))
}

// NewClient returns an HTTP client that keeps idle connections. timeout is the maximum time without
// bytes of a connection that waits for an answer or reads it.
func NewClient(timeout time.Duration, idle int) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithReadTimeout(timeout).WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = idle
		t.MaxIdleConnsPerHost = idle
		t.ReadBufferSize = socketBuffer
		t.WriteBufferSize = socketBuffer
		t.DisableCompression = true // it would hide the size of an object
	})
}

// Transport sends requests as NewClient's client does. Its errors do not have the requests' URLs,
// which may hold signatures.
type Transport struct{ client *awshttp.BuildableClient }

// NewTransport returns a transport with the client of NewClient.
func NewTransport(timeout time.Duration, idle int) Transport {
	return Transport{NewClient(timeout, idle)}
}

// Do implements the interface of clients.
func (t Transport) Do(req *http.Request) (*http.Response, error) {
	res, err := t.client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return res, err
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) { return t.Do(req) }

// Optional returns what clients take for a text that is not given if it is "".
func Optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Contextual joins the context's error with one that it caused, because clients hide it in some
// places.
func Contextual(ctx context.Context, err error) error {
	if cerr := ctx.Err(); cerr != nil && !errors.Is(err, cerr) {
		return errors.Join(cerr, err)
	}
	return err
}

// ErrUnknownEffect reports a write of which an attempt failed in a way that may hide its success,
// and after which a later attempt was refused.
var ErrUnknownEffect = errors.New("an attempt whose answer was lost may have taken effect")

// guarded marks errors of the caller's body.
type guarded struct{ io.ReaderAt }

// ReadAt implements io.ReaderAt.
func (g guarded) ReadAt(p []byte, off int64) (int, error) {
	n, err := g.ReaderAt.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = final{fmt.Errorf("read body: %w", err)}
	}
	return n, err
}

// final is an error after which another attempt is of no use.
type final struct{ error }

// Unwrap returns the cause.
func (e final) Unwrap() error { return e.error }
