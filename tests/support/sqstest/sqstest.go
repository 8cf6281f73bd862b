// Package sqstest is an HTTP server for tests. It implements the part of Amazon SQS' JSON protocol
// (AWS JSON 1.0) that package sqsqueue uses, over queues in memory, and fails where a test
// specifies a fault.
package sqstest

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/memqueue"
)

// Server is an SQS with some queues.
type Server struct {
	URL string // of the server, without a path

	mu     sync.Mutex
	queues map[string]*memqueue.Queue
	faults []Fault
	seen   []Request
}

// Fault befalls the next request of an operation.
type Fault struct {
	Op     string // SendMessage, SendMessageBatch, …
	Status int    // HTTP status of the failure; 0 drops the connection, unless Refuse is set
	Code   string // error code of SQS
	After  bool   // the request takes effect first
	Refuse []int  // entries of a batch that are refused with Code, as the sender's fault if Status is 400
}

// Request is a request that the server received.
type Request struct {
	Op       string
	Messages int
	Bytes    int // of message bodies
}

// Start returns a running server that ends with the test. It sets credentials and no region in the
// test's AWS environment.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{queues: map[string]*memqueue.Queue{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	if t, ok := t.(*testing.T); ok {
		t.Setenv("AWS_ACCESS_KEY_ID", "test")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
		t.Setenv("AWS_REGION", "")
		t.Setenv("AWS_ENDPOINT_URL", "")
	}
	return s
}

// Add makes q a queue of the server and returns its URL.
func (s *Server) Add(name string, q *memqueue.Queue) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name] = q
	return s.URL + "/000000000000/" + name
}

// Plan appends faults, each for the next request of its operation that has none before it.
func (s *Server) Plan(fs ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fs...)
}

// Seen returns the requests since the last call, and how many faults have not struck yet.
func (s *Server) Seen() ([]Request, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen, len(s.faults)
}

// take notes a request and returns the fault for it.
func (s *Server) take(r Request) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r)
	for i, f := range s.faults {
		if f.Op == r.Op {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return f, true
		}
	}
	return Fault{}, false
}

func (s *Server) queue(url string) *memqueue.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[path.Base(url)]
}

// entry is a message or a handle in a request.
type entry struct {
	ID                     string `json:"Id"`
	MessageBody            string
	MessageGroupID         string `json:"MessageGroupId"`
	MessageDeduplicationID string `json:"MessageDeduplicationId"`
	ReceiptHandle          string
	VisibilityTimeout      int
}

func (e entry) message() queue.Message {
	return queue.Message{Body: e.MessageBody, Group: e.MessageGroupID, Deduplication: e.MessageDeduplicationID}
}

type request struct {
	entry
	QueueURL            string `json:"QueueUrl"`
	Entries             []entry
	MaxNumberOfMessages int
	WaitTimeSeconds     int
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		fail(w, http.StatusBadRequest, "InvalidSecurity", "not a signed request in JSON")
		return
	}
	entries := in.Entries
	if op == "SendMessage" {
		entries = []entry{in.entry}
	}
	note := Request{Op: op, Messages: len(entries)}
	for _, e := range entries {
		note.Bytes += len(e.MessageBody)
	}
	f, faulty := s.take(note)
	if faulty && len(f.Refuse) == 0 && !f.After {
		f.strike(w)
		return
	}
	q := s.queue(in.QueueURL)
	if q == nil {
		fail(w, http.StatusBadRequest, "QueueDoesNotExist", "there is no such queue")
		return
	}
	if note.Bytes > queue.MaxMessageBytes {
		fail(w, http.StatusBadRequest, "BatchRequestTooLong", "the request is longer than 1048576 bytes")
		return
	}
	answer := s.do(r, op, q, in, f)
	if faulty && f.After {
		f.strike(w)
		return
	}
	if answer == nil {
		fail(w, http.StatusBadRequest, "UnsupportedOperation", op)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(answer)
}

// strike fails a request as a whole.
func (f Fault) strike(w http.ResponseWriter) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	fail(w, f.Status, f.Code, "injected fault")
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": message})
}

func sum(s string) string {
	h := md5.Sum([]byte(s))
	return hex.EncodeToString(h[:])
}

type object = map[string]any

// do carries out a request and returns its answer, nil for an operation that the server does not
// know.
func (s *Server) do(r *http.Request, op string, q *memqueue.Queue, in request, f Fault) any {
	switch op {
	case "SendMessage":
		_ = q.Send(r.Context(), in.message())
		return object{"MessageId": "sent", "MD5OfMessageBody": sum(in.MessageBody)}
	case "SendMessageBatch":
		return f.each(in.Entries, func(e entry) object {
			_ = q.Send(r.Context(), e.message())
			return object{"Id": e.ID, "MessageId": "sent", "MD5OfMessageBody": sum(e.MessageBody)}
		})
	case "DeleteMessageBatch":
		return f.each(in.Entries, func(e entry) object {
			_ = q.Delete(r.Context(), queue.Received{Handle: e.ReceiptHandle})
			return object{"Id": e.ID}
		})
	case "ChangeMessageVisibilityBatch":
		return f.each(in.Entries, func(e entry) object {
			_ = q.Release(r.Context(), time.Duration(e.VisibilityTimeout)*time.Second, queue.Received{Handle: e.ReceiptHandle})
			return object{"Id": e.ID}
		})
	case "GetQueueAttributes":
		return object{"Attributes": map[string]string{"ApproximateNumberOfMessages": strconv.Itoa(len(q.Messages()))}}
	case "ReceiveMessage":
		return receive(r, q, in)
	}
	return nil
}

// each does something with the entries of a batch that the fault does not refuse.
func (f Fault) each(entries []entry, do func(entry) object) object {
	done, failed := []object{}, []object{}
	for i, e := range entries {
		if slices.Contains(f.Refuse, i) {
			failed = append(failed, object{"Id": e.ID, "Code": f.Code, "Message": "injected fault", "SenderFault": f.Status == http.StatusBadRequest})
		} else {
			done = append(done, do(e))
		}
	}
	return object{"Successful": done, "Failed": failed}
}

func receive(r *http.Request, q *memqueue.Queue, in request) any {
	ms, err := q.Receive(r.Context(), in.MaxNumberOfMessages, 0, time.Duration(in.VisibilityTimeout)*time.Second)
	if err != nil {
		return nil
	}
	out := []object{}
	for _, m := range ms {
		out = append(out, object{
			"MessageId": m.ID, "ReceiptHandle": m.Handle, "Body": m.Body, "MD5OfBody": sum(m.Body),
			"Attributes": map[string]string{
				"SentTimestamp": strconv.FormatInt(m.Sent.UnixMilli(), 10), "ApproximateReceiveCount": strconv.Itoa(m.Receives), "MessageGroupId": m.Group,
			},
		})
	}
	return object{"Messages": out}
}
