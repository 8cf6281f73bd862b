package lambda

import (
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/promlake/promlake/internal/format/jsontext"
)

// httpEvent is an HTTP request of an HTTP API or of a Function URL, in payload format 2.0.
type httpEvent struct {
	Path    string // of a Function URL as sent; an HTTP API decodes it
	Query   string // as sent
	Cookies []string
	Headers map[string]string // repeated headers are joined by commas
	Body    []byte            // as sent
	Base64  bool
	Context requestContext
}

type requestContext struct {
	DomainName string `json:"domainName"`
	Stage      string `json:"stage"`
	HTTP       struct {
		Method   string `json:"method"`
		SourceIP string `json:"sourceIp"`
	} `json:"http"`
	Authorizer struct { // absent or null unless the route or the URL requires IAM
		IAM struct {
			UserARN string `json:"userArn"`
		} `json:"iam"`
	} `json:"authorizer"`
}

// member decodes one member of the event.
func (e *httpEvent) member(p *jsontext.Parser, key string) (err error) {
	switch key {
	case "rawPath":
		e.Path, err = text(p)
	case "rawQueryString":
		e.Query, err = text(p)
	case "cookies":
		err = p.Decode(&e.Cookies)
	case "headers":
		err = p.Decode(&e.Headers)
	case "requestContext":
		err = p.Decode(&e.Context)
	case "isBase64Encoded":
		err = p.Decode(&e.Base64)
	case "body":
		if p.Peek() != '"' {
			return p.Skip()
		}
		e.Body, err = p.Bytes()
	default:
		err = p.Skip()
	}
	return err
}

// defaultStage is the stage of an HTTP API whose name is not part of the path.
const defaultStage = "$default"

// url returns the request's URL, without the stage's name with which an HTTP API prefixes the path.
func (e *httpEvent) url(kind Event) *url.URL {
	u := &url.URL{Path: e.Path, RawQuery: e.Query}
	if kind == FunctionURL {
		if plain, err := url.PathUnescape(e.Path); err == nil {
			u.Path, u.RawPath = plain, e.Path
		}
	} else if stage := e.Context.Stage; stage != "" && stage != defaultStage {
		if rest, ok := strings.CutPrefix(u.Path, "/"+stage); ok && (rest == "" || rest[0] == '/') {
			u.Path = rest
		}
	}
	u.Path = cmp.Or(u.Path, "/")
	return u
}

// request returns the client's request as a net/http request. Its body is valid until release is
// called.
func (e *httpEvent) request(ctx context.Context, kind Event) (r *http.Request, release func()) {
	u := e.url(kind)
	r = &http.Request{
		Method: e.Context.HTTP.Method,
		URL:    u,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:     make(http.Header, len(e.Headers)+1),
		Host:       e.Context.DomainName,
		RemoteAddr: net.JoinHostPort(e.Context.HTTP.SourceIP, "0"), // the event has no port
		RequestURI: u.RequestURI(),
	}
	for name, v := range e.Headers {
		if strings.EqualFold(name, "Host") {
			r.Host = v
			continue
		}
		r.Header.Set(name, v)
	}
	if len(e.Cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	body := e.body()
	r.Body, r.ContentLength = body, int64(len(body.rest))
	return r.WithContext(ctx), func() { _ = body.Close() }
}

// body is a request's body.
type body struct {
	rest   []byte // what was not read yet
	err    error  // after rest: the base64 is invalid
	memory []byte // for giveBuffer; nil: rest is in the payload
	closed bool
}

func (e *httpEvent) body() *body {
	if !e.Base64 {
		return &body{rest: e.Body}
	}
	plain, err := base64.StdEncoding.AppendDecode(takeBuffer(), e.Body)
	return &body{rest: plain, err: err, memory: plain}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(b.rest) == 0:
		return 0, cmp.Or(b.err, io.EOF)
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close invalidates the body: later invocations reuse its memory.
func (b *body) Close() error {
	if b.memory != nil {
		giveBuffer(b.memory)
	}
	b.closed, b.rest, b.memory = true, nil, nil
	return nil
}
