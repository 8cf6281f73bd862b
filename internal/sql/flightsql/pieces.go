package flightsql

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// maxEndpoints is less than maxStreams: clients open all endpoints at once on one connection, and
	// read them in their order.
	maxEndpoints = 16
	// maxTicketBytes lets clients receive all tickets as one message, of 4 MiB.
	maxTicketBytes = 4 << 20 / maxEndpoints
)

// handleVersion is that of the JSON of handles.
const handleVersion = 1

// handle is a statement as clients send it back: a prepared one, or one in a ticket.
type handle struct {
	Version int `json:"version"`
	statement
}

// handle returns the handle of a statement.
func (st statement) handle() ([]byte, error) {
	out, err := json.Marshal(handle{handleVersion, st})
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "write the parameters as JSON: %v", err)
	}
	return out, nil
}

// parseHandle reads a handle.
func parseHandle(b []byte) (statement, error) {
	var h handle
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	switch err := dec.Decode(&h); {
	case err != nil || h.Query == "":
		return h.statement, status.Error(codes.InvalidArgument, "the handle or the ticket is not one of a statement of this server")
	case h.Version != handleVersion:
		return h.statement, status.Errorf(codes.InvalidArgument, "the handle or the ticket has version %d, and this server knows %d: execute, or prepare, the statement again", h.Version, handleVersion)
	}
	return h.statement, nil
}

// endpoints is the answer to a request for the rows of a statement, which runs when its ticket is
// used. A statement that the API divides has an endpoint for each piece.
func (s *service) endpoints(ctx context.Context, st statement, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	pieces, err := s.pieces(ctx, st)
	if err != nil {
		return nil, err
	}
	var schema *arrow.Schema
	if len(pieces) > 0 { // a client that opens several endpoints at once needs it
		if schema, err = s.schema(ctx, pieces[0]); err != nil {
			return nil, err
		}
	} else {
		pieces = []statement{st}
	}
	out := info(desc, nil, schema)
	out.Endpoint = nil
	for _, p := range pieces {
		handle, err := p.handle()
		if err != nil {
			return nil, err
		}
		ticket, err := flightsql.CreateStatementQueryTicket(handle)
		if err != nil {
			return nil, failure(fmt.Errorf("make a ticket: %w", err))
		}
		out.Endpoint = append(out.Endpoint, &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}})
	}
	return out, nil
}

// divisible matches all statements that the API may divide.
var divisible = regexp.MustCompile(`(?i)samples|promql`)

// pieces returns the pieces of a statement, none if it is answered as a whole.
func (s *service) pieces(ctx context.Context, st statement) ([]statement, error) {
	if !divisible.MatchString(st.Query) {
		return nil, nil
	}
	params, err := json.Marshal(st.Params)
	if err != nil {
		return nil, failure(err)
	}
	form := url.Values{"sql": {st.Query}, "params": {string(params)}, "slices": {strconv.Itoa(maxEndpoints)}}
	answer, err := s.do(ctx, http.MethodGet, "/api/v1/slices?"+form.Encode(), nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var found struct {
		Data struct {
			Slices []struct {
				SQL      string          `json:"sql"`
				Snapshot json.RawMessage `json:"snapshot"`
			} `json:"slices"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return nil, failure(fmt.Errorf("read the slices of a statement: %w", err))
	}
	var out []statement
	for _, p := range found.Data.Slices {
		if len(p.SQL)+len(p.Snapshot) > min(maxTicketBytes, s.set.MaxMessageBytes)-1024 {
			return nil, nil
		}
		out = append(out, statement{Query: p.SQL, Snapshot: p.Snapshot})
	}
	return out, nil
}

// inTenant returns ctx with the tenant of the piece that a call asks for, if the caller names none:
// the API decides whether the caller may read it.
func inTenant(ctx context.Context, st statement) context.Context {
	var of struct {
		Tenant string `json:"tenant"`
	}
	md, _ := metadata.FromIncomingContext(ctx)
	if len(md.Get(tenantKey)) > 0 || json.Unmarshal(st.Snapshot, &of) != nil || of.Tenant == "" {
		return ctx
	}
	return metadata.NewIncomingContext(ctx, metadata.Join(md, metadata.Pairs(tenantKey, of.Tenant)))
}
