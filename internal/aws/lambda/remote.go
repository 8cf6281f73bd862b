package lambda

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/promlake/promlake/internal/aws/signed"
	"github.com/promlake/promlake/internal/base/memory"
)

// maxPayload is the largest event, and the largest answer that is not streamed, in bytes.
const maxPayload = 6_291_556

// directDomain is the domain name of events of kind Direct. No domain of an API or a URL is in a
// zone of this name.
const directDomain = "invoke.promlake.internal"

// ErrRequestTooLarge reports an event that Lambda does not accept.
var ErrRequestTooLarge = errors.New("event is larger than AWS Lambda accepts")

// Remote is a function that this process invokes by Lambda's API. It implements http.RoundTripper:
// an HTTP request becomes an event of kind Direct, with the identity of the invocation to which its
// context belongs and without a limit of time but the function's. A request that ends early leaves
// the function at work. It is safe for concurrent use.
type Remote struct {
	Name   string         // or ARN; either may end in a colon and a version or an alias
	Client *signed.Client // of the service lambda
}

// Self returns the name of the function in which this process runs, with the version if it is
// published. It is "" outside of Lambda.
func Self() string {
	name, version := os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), os.Getenv("AWS_LAMBDA_FUNCTION_VERSION")
	if name == "" || version == "" || version == "$LATEST" {
		return name
	}
	return name + ":" + version
}

// Invoke sends an event to the function and returns its answer. It fails with ErrRequestTooLarge
// before it sends one that is too large. Errors of the function, and refusals such as that of one
// invocation too many, are errors.
func (r *Remote) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if len(event) > maxPayload {
		return nil, fmt.Errorf("invoke %s: %w: it has %d bytes, at most %d are allowed", r.Name, ErrRequestTooLarge, len(event), maxPayload)
	}
	path := "/2015-03-31/functions/" + strings.ReplaceAll(url.PathEscape(r.Name), ":", "%3A") + "/invocations"
	resp, err := r.Client.Post(ctx, path, nil, event)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", r.Name, err)
	}
	out, err := io.ReadAll(io.LimitReader(resp.Body, maxPayload))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("invoke %s: %w", r.Name, err)
	}
	if failed := resp.Header.Get("X-Amz-Function-Error"); failed != "" || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("invoke %s: status %d %s: %.1000s", r.Name, resp.StatusCode, cmp.Or(failed, resp.Header.Get("X-Amzn-ErrorType")), out)
	}
	return out, nil
}

// RoundTrip implements http.RoundTripper.
func (r *Remote) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("invoke %s: %w", r.Name, err)
	}
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: req.URL.Path, RawQueryString: req.URL.RawQuery, Headers: map[string]string{},
		Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
	}
	e.RequestContext.DomainName, e.RequestContext.HTTP.Method = directDomain, req.Method
	for name, values := range req.Header {
		e.Headers[name] = strings.Join(values, ", ")
	}
	if i, ok := Current(req.Context()); ok && i.Principal != "" {
		iam := &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: i.Principal}
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{IAM: iam}
		delete(e.Headers, "Authorization") // the signature of another request
	}
	event, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", r.Name, err)
	}
	out, err := r.Invoke(req.Context(), event)
	if err == nil {
		err = memory.Of(req.Context()).Charge(2 * int64(len(out))) // the JSON, and the text of the body
	}
	if err != nil {
		return nil, err
	}
	var a events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(out, &a); err != nil || a.StatusCode == 0 {
		return nil, fmt.Errorf("invoke %s: want the answer to an HTTP request, got %.1000q", r.Name, out)
	}
	var text io.Reader = strings.NewReader(a.Body)
	if a.IsBase64Encoded {
		text = base64.NewDecoder(base64.StdEncoding, text)
	}
	h := make(http.Header, len(a.Headers))
	for name, v := range a.Headers {
		h.Set(name, v)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.StatusCode, http.StatusText(a.StatusCode)), StatusCode: a.StatusCode,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, ContentLength: -1, Body: io.NopCloser(text), Request: req,
	}, nil
}
