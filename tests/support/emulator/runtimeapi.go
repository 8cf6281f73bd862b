package emulator

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers and types of the Runtime API ("Using the Lambda runtime API" in Lambda's developer
// guide).
const (
	headerRequestID    = "Lambda-Runtime-Aws-Request-Id"
	headerDeadline     = "Lambda-Runtime-Deadline-Ms"
	headerFunction     = "Lambda-Runtime-Invoked-Function-Arn"
	headerTrace        = "Lambda-Runtime-Trace-Id"
	headerResponseMode = "Lambda-Runtime-Function-Response-Mode"
	trailerErrorType   = "Lambda-Runtime-Function-Error-Type"
	trailerErrorBody   = "Lambda-Runtime-Function-Error-Body"
	typeHTTPStream     = "application/vnd.awslambda.http-integration-response"
)

// routes is the Runtime API and the Extensions API.
func (e *environment) routes() http.Handler {
	const runtime, extension = "/2018-06-01/runtime", "/2020-01-01/extension"
	mux := http.NewServeMux()
	var first sync.Once
	mux.HandleFunc("GET "+runtime+"/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		first.Do(e.ready)
		e.next(w, r)
	})
	mux.HandleFunc("POST "+runtime+"/invocation/{id}/response", e.response)
	mux.HandleFunc("POST "+runtime+"/invocation/{id}/error", e.invocationError)
	mux.HandleFunc("POST "+runtime+"/init/error", e.initError)
	mux.HandleFunc("POST "+extension+"/register", func(w http.ResponseWriter, _ *http.Request) {
		e.extension.Store(true)
		w.Header().Set("Lambda-Extension-Identifier", requestID())
		reply(w, http.StatusOK, map[string]string{"functionName": e.f.set.Name, "functionVersion": "$LATEST", "handler": "bootstrap"})
	})
	mux.HandleFunc("GET "+extension+"/event/next", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // an extension that registered for no event gets none
	})
	return mux
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the process may have ended
}

func accepted(w http.ResponseWriter) {
	reply(w, http.StatusAccepted, map[string]string{"status": "OK"})
}

// ready records the time from the process' start to its first request for an event.
func (e *environment) ready() {
	e.f.mu.Lock()
	e.cold.Ready = time.Since(e.begin)
	e.f.mu.Unlock()
}

// next delivers the next event; it waits for one.
func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	var inv *invocation
	select {
	case inv = <-e.events:
	case <-r.Context().Done():
		return
	}
	e.mu.Lock()
	e.pending[inv.id] = inv
	e.mu.Unlock()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(inv.payload)))
	h.Set(headerRequestID, inv.id)
	h.Set(headerDeadline, strconv.FormatInt(inv.deadline.UnixMilli(), 10))
	h.Set(headerFunction, fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", region, account, e.f.set.Name))
	h.Set(headerTrace, "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0")
	_, _ = w.Write(inv.payload) // wait handles the end of the process
	_ = http.NewResponseController(w).Flush()
}

// unanswered returns the invocation that a request answers, unless it has an answer already.
func (e *environment) unanswered(w http.ResponseWriter, r *http.Request) (*invocation, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	inv, ok := e.pending[r.PathValue("id")]
	if !ok {
		reply(w, http.StatusBadRequest, FunctionError{"InvalidRequestID", "no such invocation: " + r.PathValue("id")})
	}
	return inv, ok
}

// settle ends an invocation.
func (e *environment) settle(inv *invocation) {
	e.mu.Lock()
	delete(e.pending, inv.id)
	e.mu.Unlock()
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if e.cold.Answer == 0 {
		e.cold.Answer = time.Since(e.begin)
	}
}

// response handles a function's answer.
func (e *environment) response(w http.ResponseWriter, r *http.Request) {
	inv, ok := e.unanswered(w, r)
	if !ok {
		return
	}
	if r.Header.Get("Content-Type") == typeHTTPStream || r.Header.Get(headerResponseMode) == "streaming" {
		e.streamed(w, r, inv)
		return
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, MaxPayload+1))
	if err != nil {
		return // wait reports the end of the process to the caller
	}
	e.settle(inv)
	if len(b) > MaxPayload {
		fe := &FunctionError{ErrorTooLarge, fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", MaxPayload)}
		inv.fail(fe)
		reply(w, http.StatusRequestEntityTooLarge, fe)
		return
	}
	if fe := trailerError(r); fe != nil {
		inv.fail(fe)
	} else {
		inv.answer <- answer{stream: &Stream{Body: io.NopCloser(bytes.NewReader(b))}}
	}
	accepted(w)
}

// streamed relays an answer while the function writes it.
func (e *environment) streamed(w http.ResponseWriter, r *http.Request, inv *invocation) {
	out, in := io.Pipe()
	s := &Stream{Body: out}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Type") == typeHTTPStream {
		var err error
		if s.Prelude, body, err = readPrelude(r.Body); err != nil {
			e.settle(inv)
			inv.fail(&FunctionError{"Runtime.InvalidResponse", err.Error()})
			accepted(w)
			return
		}
	}
	e.mu.Lock()
	inv.body = in
	e.mu.Unlock()
	inv.answer <- answer{stream: s}
	n, err := io.Copy(in, io.LimitReader(body, MaxStream+1))
	switch fe := trailerError(r); {
	case errors.Is(err, io.ErrClosedPipe): // the caller has closed the body
		_, _ = io.Copy(io.Discard, body)
	case err != nil:
		return // wait reports the end of the process to the caller
	case n > MaxStream:
		_ = in.CloseWithError(&FunctionError{ErrorTooLarge, fmt.Sprintf("Streamed response exceeded %d bytes.", MaxStream)})
	case fe != nil:
		_ = in.CloseWithError(fe)
	}
	e.settle(inv)
	_ = in.Close() // no effect after CloseWithError
	accepted(w)
}

// maxPrelude is the maximal length of the prelude of a streamed HTTP answer, bytes.
const maxPrelude = 16 << 10

// preludeEnd separates the prelude from the body.
var preludeEnd = make([]byte, 8)

// readPrelude reads the status and the headers of a streamed HTTP answer, and returns its body.
func readPrelude(r io.Reader) (*Prelude, io.Reader, error) {
	var head []byte
	for chunk := make([]byte, 4096); ; {
		n, err := r.Read(chunk)
		head = append(head, chunk[:n]...)
		text, rest, ok := bytes.Cut(head, preludeEnd)
		if ok {
			p := &Prelude{}
			if err := json.Unmarshal(text, p); err != nil {
				return nil, nil, fmt.Errorf("read prelude: %w", err)
			}
			return p, io.MultiReader(bytes.NewReader(rest), r), nil
		}
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("read prelude: no end: %w", err)
		case len(head) > maxPrelude:
			return nil, nil, fmt.Errorf("read prelude: no end within %d bytes", maxPrelude)
		}
	}
}

// trailerError returns the error that a function reported after the body, if any. The caller has
// read the body to its end.
func trailerError(r *http.Request) *FunctionError {
	kind := r.Trailer.Get(trailerErrorType)
	if kind == "" {
		return nil
	}
	fe := &FunctionError{Type: kind}
	if b, err := base64.StdEncoding.DecodeString(r.Trailer.Get(trailerErrorBody)); err == nil {
		_ = json.Unmarshal(b, fe) // the message is optional
	}
	return fe
}

// readError reads the body of an error.
func readError(r *http.Request) *FunctionError {
	fe := &FunctionError{}
	b, err := io.ReadAll(io.LimitReader(r.Body, MaxPayload))
	if err != nil || json.Unmarshal(b, fe) != nil {
		fe.Message = strings.TrimSpace(string(b))
	}
	fe.Type = cmp.Or(fe.Type, "Unhandled")
	return fe
}

func (e *environment) invocationError(w http.ResponseWriter, r *http.Request) {
	inv, ok := e.unanswered(w, r)
	if !ok {
		return
	}
	fe := readError(r)
	e.settle(inv)
	inv.fail(fe)
	accepted(w)
}

func (e *environment) initError(w http.ResponseWriter, r *http.Request) {
	e.blame(readError(r))
	accepted(w)
}
