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
	r.Body, r.ContentLength = body, body.size
	return r.WithContext(ctx), func() { _ = body.Close() }
}

// body is a request's body. It is decoded from base64 while it is read, directly into the reader's
// memory.
type body struct {
	src    []byte // the rest, as it is in the payload
	base64 bool
	size   int64   // bytes after decoding
	carry  [3]byte // decoded bytes that did not fit into the last reader's buffer
	carryN int     // number of bytes left in carry, which are its last ones
	closed bool
}

func (e *httpEvent) body() *body {
	b := &body{src: e.Body, base64: e.Base64, size: int64(len(e.Body))}
	if b.base64 {
		b.size = decodedLen(e.Body)
	}
	return b
}

// decodedLen returns the exact decoded length of padded base64.
func decodedLen(src []byte) int64 {
	n := base64.StdEncoding.DecodedLen(len(src))
	for i := len(src); i > 0 && i > len(src)-2 && src[i-1] == '='; i-- {
		n--
	}
	return int64(n)
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(p) == 0:
		return 0, nil
	case b.carryN > 0:
		n := copy(p, b.carry[len(b.carry)-b.carryN:])
		b.carryN -= n
		return n, nil
	case len(b.src) == 0:
		return 0, io.EOF
	case !b.base64:
		n := copy(p, b.src)
		b.src = b.src[n:]
		return n, nil
	case len(p) < 3:
		return b.readFew(p)
	}
	n := min(len(p)/3*4, len(b.src))
	got, err := base64.StdEncoding.Decode(p, b.src[:n])
	b.src = b.src[n:]
	return got, err
}

// readFew decodes one group of four characters for a reader with a buffer of less than three bytes.
func (b *body) readFew(p []byte) (int, error) {
	var group [3]byte
	n := min(4, len(b.src))
	got, err := base64.StdEncoding.Decode(group[:], b.src[:n])
	b.src = b.src[n:]
	if err != nil {
		return 0, err
	}
	k := copy(p, group[:got])
	b.carryN = copy(b.carry[len(b.carry)-(got-k):], group[k:got])
	return k, nil
}

// Close invalidates the body: the next event reuses the payload's memory.
func (b *body) Close() error {
	b.closed, b.src, b.carryN = true, nil, 0
	return nil
}
