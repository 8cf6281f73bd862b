package emulator

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// httpEvent is an event of payload format 2.0, which HTTP APIs and Function URLs send.
type httpEvent struct {
	Version  string            `json:"version"`
	RouteKey string            `json:"routeKey"`
	RawPath  string            `json:"rawPath"`
	RawQuery string            `json:"rawQueryString"`
	Cookies  []string          `json:"cookies,omitempty"`
	Headers  map[string]string `json:"headers"`
	Query    map[string]string `json:"queryStringParameters,omitempty"`
	Context  requestContext    `json:"requestContext"`
	Path     map[string]string `json:"pathParameters,omitempty"`
	Body     *string           `json:"body,omitempty"`
	Base64   bool              `json:"isBase64Encoded"`
}

type requestContext struct {
	Account string      `json:"accountId"`
	API     string      `json:"apiId"`
	Domain  string      `json:"domainName"`
	Prefix  string      `json:"domainPrefix"`
	HTTP    httpContext `json:"http"`
	Request string      `json:"requestId"`
	Route   string      `json:"routeKey"`
	Stage   string      `json:"stage"`
	Time    string      `json:"time"`
	Epoch   int64       `json:"timeEpoch"`
}

type httpContext struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// httpAnswer is a function's answer to an httpEvent.
type httpAnswer struct {
	Status  *int              `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Cookies []string          `json:"cookies"`
	Body    string            `json:"body"`
	Base64  bool              `json:"isBase64Encoded"`
}

// errBodySize reports a body over MaxGatewayBody.
var errBodySize = errors.New("body too large")

// newEvent returns the event of a request, without its body.
func newEvent(r *http.Request, path string) *httpEvent {
	now := time.Now().UTC()
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		ip = r.RemoteAddr
	}
	e := &httpEvent{
		Version: "2.0", RawPath: path, RawQuery: r.URL.RawQuery,
		Headers: map[string]string{"host": r.Host, "x-forwarded-for": ip, "x-forwarded-port": "443", "x-forwarded-proto": "https"},
		Context: requestContext{
			Account: account, Request: requestID(), Stage: "$default", Time: now.Format("02/Jan/2006:15:04:05 -0700"), Epoch: now.UnixMilli(),
			HTTP: httpContext{Method: r.Method, Path: path, Protocol: r.Proto, SourceIP: ip, UserAgent: r.UserAgent()},
		},
	}
	for name, vs := range r.Header {
		if name == "Cookie" {
			for c := range strings.SplitSeq(strings.Join(vs, "; "), "; ") {
				e.Cookies = append(e.Cookies, c)
			}
			continue
		}
		e.Headers[strings.ToLower(name)] = strings.Join(vs, ",")
	}
	if q, err := url.ParseQuery(r.URL.RawQuery); err == nil && len(q) > 0 {
		e.Query = map[string]string{}
		for k, vs := range q {
			e.Query[k] = strings.Join(vs, ",")
		}
	}
	return e
}

// read sets the event's body: as text if its type is a text type, else as base64.
func (e *httpEvent) read(r *http.Request, limit int64) error {
	b, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	if int64(len(b)) > limit {
		return errBodySize
	}
	if len(b) == 0 {
		return nil
	}
	e.Headers["content-length"] = fmt.Sprint(len(b))
	text := string(b)
	if e.Base64 = !isText(r.Header) || !utf8.Valid(b); e.Base64 {
		text = base64.StdEncoding.EncodeToString(b)
	}
	e.Body = &text
	return nil
}

// isText reports whether API Gateway passes such a body as text.
func isText(h http.Header) bool {
	if h.Get("Content-Encoding") != "" {
		return false
	}
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch kind {
	case "application/json", "application/javascript", "application/xml":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}
