package emulator

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Limits of API Gateway's HTTP APIs ("Quotas for configuring and running an HTTP API" in its
// developer guide).
const (
	MaxGatewayBody     = 10 << 20 // bytes of a request's body
	MaxGatewayDuration = 30 * time.Second
)

// Invoker delivers an event to a function and returns its answer in one piece. Errors that the
// function reported are *FunctionError.
type Invoker interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Gateway is an HTTP API with Lambda proxy integrations, payload format 2.0.
type Gateway struct {
	// Routes maps route keys to functions: "POST /api/v1/write", "ANY /api/v1/{proxy+}",
	// "$default". The most specific route wins: the one with the longest literal part, then the
	// one without a greedy variable, then the one that names the method.
	Routes map[string]Invoker
	// Stage is the name of the API's stage; "" is "$default", which is not part of the path.
	Stage string
	// Timeout is the maximal duration of an integration; 0 is MaxGatewayDuration.
	Timeout time.Duration
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, to, ok := g.route(r.Method, g.unstaged(r.URL.Path))
	if !ok {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	payload, err := g.event(r, route)
	switch {
	case errors.Is(err, errBodySize):
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, "Bad Request")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(g.Timeout, MaxGatewayDuration))
	defer cancel()
	b, err := to.Invoke(ctx, payload)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable")
	case errors.Is(err, ErrRequestTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case err != nil:
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
	default:
		writeAnswer(w, b)
	}
}

// refuse answers with an error of the gateway itself.
func refuse(w http.ResponseWriter, status int, text string) {
	reply(w, status, map[string]string{"message": text})
}

// unstaged returns the path without the stage's name, "" if the path does not begin with it.
func (g *Gateway) unstaged(path string) string {
	if g.Stage == "" {
		return path
	}
	rest, ok := strings.CutPrefix(path, "/"+g.Stage)
	if !ok || rest != "" && rest[0] != '/' {
		return ""
	}
	return "/" + strings.TrimPrefix(rest, "/")
}

// route finds the most specific route.
func (g *Gateway) route(method, path string) (key string, to Invoker, ok bool) {
	if path == "" {
		return "", nil, false
	}
	best := -1
	for k, invoker := range g.Routes {
		if rank := match(k, method, path); rank > best {
			best, key, to = rank, k, invoker
		}
	}
	return key, to, best >= 0
}

// match ranks a route for a request; -1 does not match, and more is more specific.
func match(key, method, path string) int {
	if key == "$default" {
		return 0
	}
	verb, pattern, _ := strings.Cut(key, " ")
	if verb != "ANY" && verb != method {
		return -1
	}
	rank, greedy := 1, 2
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, part := range want {
		if strings.HasPrefix(part, "{") && strings.HasSuffix(part, "+}") {
			if len(got) <= i || got[i] == "" {
				return -1
			}
			got, want, greedy = got[:i], want[:i], 0
			break
		}
		if i >= len(got) {
			return -1
		}
		if strings.HasPrefix(part, "{") {
			continue
		}
		if part != got[i] {
			return -1
		}
		rank += 4
	}
	if len(want) != len(got) {
		return -1
	}
	if verb != "ANY" {
		rank++
	}
	return rank + greedy
}

// event returns a request as an HTTP API passes it on: the path is decoded, the query is not.
func (g *Gateway) event(r *http.Request, route string) ([]byte, error) {
	e := newEvent(r, r.URL.Path)
	e.RouteKey, e.Context.Route = route, route
	e.Context.API, e.Context.Prefix, e.Context.Domain = "abcdefghij", "abcdefghij", "abcdefghij.execute-api."+region+".amazonaws.com"
	if g.Stage != "" {
		e.Context.Stage = g.Stage
	}
	if err := e.read(r, MaxGatewayBody); err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

// writeAnswer writes a function's answer as an HTTP response. An answer without a status is the
// body of a 200, as payload format 2.0 defines.
func writeAnswer(w http.ResponseWriter, b []byte) {
	var a httpAnswer
	if err := json.Unmarshal(b, &a); err != nil || a.Status == nil {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b)
		return
	}
	body := []byte(a.Body)
	if a.Base64 {
		var err error
		if body, err = base64.StdEncoding.DecodeString(a.Body); err != nil {
			refuse(w, http.StatusInternalServerError, "Internal Server Error")
			return
		}
	}
	writeHead(w, *a.Status, a.Headers, a.Cookies)
	_, _ = w.Write(body) // the client may have gone
}

func writeHead(w http.ResponseWriter, status int, headers map[string]string, cookies []string) {
	for name, v := range headers {
		w.Header().Set(name, v)
	}
	for _, c := range cookies {
		w.Header().Add("Set-Cookie", c)
	}
	w.WriteHeader(status)
}
