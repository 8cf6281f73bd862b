package flightsql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// address is that of the API behind the transport, which is a handler of this process.
	address = "http://localhost"
	// tenantKey is the name of the tenant in the metadata of a call.
	tenantKey = "x-scope-orgid"
)

// statement is a statement with its parameters. Its JSON is the body of a request to the API, and
// part of its handle.
type statement struct {
	Query    string          `json:"query"`
	Params   []any           `json:"params,omitempty"`
	Format   string          `json:"format"`
	Snapshot json.RawMessage `json:"snapshot,omitempty"` // of a piece
}

// passed are the names of the metadata that become headers of a request.
var passed = []string{"authorization", tenantKey, "user-agent"}

// do sends a request with the caller's token and tenant, and returns an answer of status 200. The
// caller closes its body.
func (s *service) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address+path, bytes.NewReader(body))
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	r.Header.Set("Content-Type", "application/json")
	md, _ := metadata.FromIncomingContext(ctx)
	for _, name := range passed {
		for _, v := range md.Get(name) {
			r.Header.Add(name, v)
		}
	}
	answer, err := s.api.Do(r)
	if err != nil {
		return nil, failure(err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(refusal(answer), answer.Body.Close())
	}
	return answer, nil
}

// result reads the rows of an answer. To release it closes the answer.
type result struct {
	*ipc.Reader
	body io.Closer
}

// Release implements array.RecordReader. What was read is complete, or Err has told.
func (r result) Release() {
	r.Reader.Release()
	_ = r.body.Close()
}

// Err implements array.RecordReader.
func (r result) Err() error {
	if err := r.Reader.Err(); err != nil {
		return failure(fmt.Errorf("the result is incomplete: %w", err))
	}
	return nil
}

// ask sends a statement to the API, and returns its result, which the caller releases.
func (s *service) ask(ctx context.Context, st statement) (result, error) {
	st.Format = "arrow"
	body, err := json.Marshal(st)
	if err != nil {
		return result{}, status.Errorf(codes.InvalidArgument, "write the parameters as JSON: %v", err)
	}
	answer, err := s.do(inTenant(ctx, st), http.MethodPost, "/api/v1/sql", body)
	if err != nil {
		return result{}, err
	}
	in, err := ipc.NewReader(answer.Body)
	if err != nil {
		_ = answer.Body.Close() // the read has failed already
		return result{}, failure(fmt.Errorf("read the result: %w", err))
	}
	return result{in, answer.Body}, nil
}

// stream asks a statement and passes its rows on as they come.
func (s *service) stream(ctx context.Context, st statement) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	in, err := s.ask(ctx, st)
	if err != nil {
		return nil, nil, err
	}
	out := make(chan flight.StreamChunk)
	go flight.StreamChunksFromReader(ctx, in, out)
	return in.Schema(), out, nil
}

// schema returns the schema of a statement's result, which is not computed.
func (s *service) schema(ctx context.Context, st statement) (*arrow.Schema, error) {
	if st.Snapshot == nil {
		st.Query = "SELECT * FROM (\n" + st.Query + "\n)"
	}
	st.Query += " LIMIT 0" // a piece has none, and its columns may have one name
	in, err := s.ask(ctx, st)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	return in.Schema(), nil
}

// failure gives an error the code of a call.
func failure(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	default:
		return status.Error(codes.Internal, err.Error())
	}
}

// refusedCodes are the codes for the types of errors of Prometheus' API.
var refusedCodes = map[string]codes.Code{
	"bad_data": codes.InvalidArgument, "execution": codes.FailedPrecondition, "timeout": codes.DeadlineExceeded, "canceled": codes.Canceled,
	"unavailable": codes.Unavailable, "unauthorized": codes.Unauthenticated, "forbidden": codes.PermissionDenied, "not_found": codes.NotFound,
}

// refusal is the error of an answer that is no result.
func refusal(answer *http.Response) error {
	const most = 64 << 10
	b, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return failure(fmt.Errorf("read the error of status %d: %w", answer.StatusCode, err))
	}
	var e struct {
		Kind string `json:"errorType"`
		Text string `json:"error"`
	}
	if json.Unmarshal(b, &e) != nil || e.Text == "" {
		e.Text = string(bytes.TrimSpace(b))
	}
	code, ok := refusedCodes[e.Kind]
	switch {
	case ok:
	case answer.StatusCode == http.StatusServiceUnavailable, answer.StatusCode == http.StatusTooManyRequests:
		code = codes.Unavailable
	default:
		code = codes.Internal
	}
	return status.Error(code, e.Text)
}
