package s3store_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore/remote"
	"github.com/promlake/promlake/internal/store/objstore/s3store"
	"github.com/promlake/promlake/tests/support/s3test"
)

// proxy forwards requests from a store to a gateway and injects faults.
type proxy struct {
	t       *testing.T
	gateway *s3test.Gateway
	target  *url.URL
	bucket  string
	url     string // of the proxy

	mu       sync.Mutex
	faults   []fault
	requests []string // "PUT", "POST uploads", …: all requests, including those with faults
}

// fault is injected once, into the first request of a kind (see kindOf).
type fault struct {
	kind string
	play func(p *proxy, w http.ResponseWriter, r *http.Request)
}

// newProxy returns a proxy in front of a bucket, and a store that uses the proxy.
func newProxy(t *testing.T) (*proxy, *s3store.Store) {
	t.Helper()
	p := &proxy{t: t, gateway: s3test.Start(t)}
	var err error
	p.target, err = url.Parse(p.gateway.Endpoint)
	require.NoError(t, err)
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	c := configOf(t, p.gateway)
	p.bucket = c.Bucket
	p.url = srv.URL
	c.Endpoint, c.Policy = srv.URL, remote.Policy{MaxAttempts: 8, MinBackoff: time.Microsecond, MaxBackoff: time.Millisecond}
	return p, open(t, c)
}

// direct returns a store over the same bucket without faults.
func (p *proxy) direct() *s3store.Store {
	return open(p.t, s3store.Config{
		Bucket: p.bucket, Region: p.gateway.Region, Endpoint: p.gateway.Endpoint, PathStyle: true,
		AccessKey: p.gateway.AccessKey, SecretKey: p.gateway.SecretKey,
	})
}

// plan sets the coming faults and clears the recorded requests.
func (p *proxy) plan(faults ...fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.requests = slices.Clone(faults), nil
}

// seen returns the requests since the last plan, and the number of faults that were not injected.
func (p *proxy) seen() (requests []string, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests), len(p.faults)
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if play := p.next(kindOf(r)); play != nil {
		play(p, w, r)
		return
	}
	res, body := p.forward(r)
	answer(w, res, body)
}

func (p *proxy) next(kind string) func(*proxy, http.ResponseWriter, *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, kind)
	i := slices.IndexFunc(p.faults, func(f fault) bool { return f.kind == kind })
	if i < 0 {
		return nil
	}
	play := p.faults[i].play
	p.faults = slices.Delete(p.faults, i, i+1)
	return play
}

// kindOf returns the method, and the query parameter of a multipart upload or a listing.
func kindOf(r *http.Request) string {
	for _, sub := range []string{"uploads", "partNumber", "uploadId", "list-type"} {
		if r.URL.Query().Has(sub) {
			return r.Method + " " + sub
		}
	}
	return r.Method
}

// forward sends the request to the gateway; its signed Host header is unchanged. The gateway may
// reject a request and close its connection before it has read the body, and the transport then
// reports the broken connection instead of the answer. So forward reads the body first, and sends a
// request without an answer again.
func (p *proxy) forward(r *http.Request) (*http.Response, []byte) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	for n := range 50 {
		time.Sleep(time.Duration(n) * time.Millisecond)
		if res, body, err := p.send(r, sent); err == nil {
			return res, body
		}
	}
	p.t.Errorf("%s %s: the gateway does not answer", r.Method, r.URL.Path)
	panic(http.ErrAbortHandler)
}

func (p *proxy) send(r *http.Request, sent []byte) (*http.Response, []byte, error) {
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", p.target.Scheme, p.target.Host
	out.Body = io.NopCloser(bytes.NewReader(sent))
	out.Header.Del("Expect")
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

func answer(w http.ResponseWriter, res *http.Response, body []byte) {
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(body)
}

// refuse answers with an S3 error before the request takes effect.
func refuse(kind string, status int, code string) fault {
	return fault{kind, func(_ *proxy, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sendError(w, status, code)
	}}
}

func sendError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>injected</Message></Error>`, code)
}

// dropBefore breaks the connection before the request takes effect, dropAfter after that; then it
// calls then.
func dropBefore(kind string) fault {
	return fault{kind, func(*proxy, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
}

func dropAfter(kind string, then ...func()) fault {
	return fault{kind, func(p *proxy, _ http.ResponseWriter, r *http.Request) {
		p.forward(r)
		for _, f := range then {
			f()
		}
		panic(http.ErrAbortHandler)
	}}
}

// failAfter answers with an internal error after the request took effect.
func failAfter(kind string) fault {
	return fault{kind, func(p *proxy, w http.ResponseWriter, r *http.Request) {
		p.forward(r)
		sendError(w, http.StatusInternalServerError, "InternalError")
	}}
}

// truncate breaks the connection after n bytes of the answer's body, and then calls then.
func truncate(kind string, n int, then ...func()) fault {
	return fault{kind, func(p *proxy, w http.ResponseWriter, r *http.Request) {
		res, body := p.forward(r)
		answer(w, res, body[:min(n, len(body))])
		_ = http.NewResponseController(w).Flush()
		for _, f := range then {
			f()
		}
		panic(http.ErrAbortHandler)
	}}
}

// stall never answers.
func stall(kind string) fault {
	return fault{kind, func(_ *proxy, _ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}}
}

func text(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }

func count(requests []string, kind string) (n int) {
	for _, r := range requests {
		if r == kind {
			n++
		}
	}
	return n
}
