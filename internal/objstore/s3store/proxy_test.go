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

	"github.com/promlake/promlake/internal/objstore/s3store"
	"github.com/promlake/promlake/internal/objstore/s3test"
)

// proxy stands between a store and a gateway and lets faults befall the requests.
type proxy struct {
	t       *testing.T
	gateway *s3test.Gateway
	target  *url.URL
	bucket  string
	url     string // of the proxy

	mu       sync.Mutex
	faults   []fault
	requests []string // "PUT", "POST uploads", …: what was asked, faults included
}

// fault befalls the first request of a kind (see kindOf), once.
type fault struct {
	kind string
	play func(p *proxy, w http.ResponseWriter, r *http.Request)
}

// newProxy returns a proxy with a bucket behind it and a store that talks through it.
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
	c.Endpoint, c.MinBackoff, c.MaxBackoff, c.Timeout = srv.URL, time.Microsecond, time.Millisecond, 5*time.Second
	return p, open(t, c)
}

// direct is a store over the same bucket that knows no faults.
func (p *proxy) direct() *s3store.Store {
	return open(p.t, s3store.Config{
		Bucket: p.bucket, Region: p.gateway.Region, Endpoint: p.gateway.Endpoint, PathStyle: true,
		AccessKey: p.gateway.AccessKey, SecretKey: p.gateway.SecretKey,
	})
}

// plan sets the faults to come and forgets the requests so far.
func (p *proxy) plan(faults ...fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.requests = slices.Clone(faults), nil
}

// seen returns the requests since the last plan and how many faults have not struck.
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

// kindOf is the method and what the query says about a multipart upload or a listing.
func kindOf(r *http.Request) string {
	for _, sub := range []string{"uploads", "partNumber", "uploadId", "list-type"} {
		if r.URL.Query().Has(sub) {
			return r.Method + " " + sub
		}
	}
	return r.Method
}

// forward has the gateway answer the request, whose signed Host header stays as it is. The gateway
// may refuse a request and close its connection while the body is still on its way, and the
// transport then reports the broken connection where it should report the answer; so the body is
// read first, and a request without an answer is sent again.
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

// refuse answers with an error of S3 before the request has any effect.
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

// dropBefore breaks the connection before the request has any effect, dropAfter when it had its
// effect; then also runs.
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

// failAfter reports an internal error after the request had its effect.
func failAfter(kind string) fault {
	return fault{kind, func(p *proxy, w http.ResponseWriter, r *http.Request) {
		p.forward(r)
		sendError(w, http.StatusInternalServerError, "InternalError")
	}}
}

// truncate breaks the connection after n bytes of the answer's body; then also runs.
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
