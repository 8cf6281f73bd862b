package flightsql

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// service answers the calls of Flight SQL. Those that it does not have are answered with
// UNIMPLEMENTED by its base.
type service struct {
	flightsql.BaseServer
	set   Settings
	api   *http.Client
	room  chan struct{} // has an entry for each call
	calls *prometheus.CounterVec
}

// info is the answer to a request for a result: one endpoint, at this server, with a ticket.
func info(desc *flight.FlightDescriptor, ticket []byte, schema *arrow.Schema) *flight.FlightInfo {
	out := &flight.FlightInfo{
		Endpoint:         []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: ticket}}},
		FlightDescriptor: desc, TotalRecords: -1, TotalBytes: -1,
	}
	if schema != nil {
		out.Schema = flight.SerializeSchema(schema, memory.DefaultAllocator)
	}
	return out
}

// readOnly is the error of calls that would write.
var readOnly = status.Error(codes.InvalidArgument, "SQL only reads: send samples by remote_write or another protocol for writing, and delete them by the admin API")

// GetFlightInfoStatement implements flightsql.Server. The statement runs when its ticket is used.
func (s *service) GetFlightInfoStatement(ctx context.Context, q flightsql.StatementQuery, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.endpoints(ctx, statement{Query: q.GetQuery()}, desc)
}

// GetSchemaStatement implements flightsql.Server.
func (s *service) GetSchemaStatement(ctx context.Context, q flightsql.StatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	return s.schemaResult(ctx, statement{Query: q.GetQuery()})
}

func (s *service) schemaResult(ctx context.Context, st statement) (*flight.SchemaResult, error) {
	schema, err := s.schema(ctx, st)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: flight.SerializeSchema(schema, memory.DefaultAllocator)}, nil
}

// DoGetStatement implements flightsql.Server.
func (s *service) DoGetStatement(ctx context.Context, t flightsql.StatementQueryTicket) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	st, err := parseHandle(t.GetStatementHandle())
	if err != nil {
		return nil, nil, err
	}
	return s.stream(ctx, st)
}

// CreatePreparedStatement implements flightsql.Server.
func (s *service) CreatePreparedStatement(ctx context.Context, r flightsql.ActionCreatePreparedStatementRequest) (out flightsql.ActionCreatePreparedStatementResult, err error) {
	st := statement{Query: r.GetQuery()}
	if out.Handle, err = st.handle(); err != nil {
		return out, err
	}
	// A statement whose parameters are not known yet has no schema; what else is wrong with a
	// statement is said when it runs.
	if schema, err := s.schema(ctx, st); err == nil {
		out.DatasetSchema = schema
	} else if code := status.Code(err); code == codes.Unauthenticated || code == codes.PermissionDenied {
		return out, err
	}
	return out, nil
}

// ClosePreparedStatement implements flightsql.Server: there is nothing to close.
func (s *service) ClosePreparedStatement(context.Context, flightsql.ActionClosePreparedStatementRequest) error {
	return nil
}

// GetFlightInfoPreparedStatement implements flightsql.Server.
func (s *service) GetFlightInfoPreparedStatement(ctx context.Context, q flightsql.PreparedStatementQuery, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	st, err := parseHandle(q.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	return s.endpoints(ctx, st, desc)
}

// GetSchemaPreparedStatement implements flightsql.Server.
func (s *service) GetSchemaPreparedStatement(ctx context.Context, q flightsql.PreparedStatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	st, err := parseHandle(q.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	return s.schemaResult(ctx, st)
}

// DoPutPreparedStatementQuery implements flightsql.Server: it returns the handle of the statement
// with these parameters, which are one row.
func (s *service) DoPutPreparedStatementQuery(_ context.Context, q flightsql.PreparedStatementQuery, in flight.MessageReader, _ flight.MetadataWriter) ([]byte, error) {
	st, err := parseHandle(q.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	st.Params = nil
	rows := int64(0)
	for in.Next() {
		b := in.RecordBatch()
		if rows += b.NumRows(); rows > 1 {
			return nil, status.Error(codes.InvalidArgument, errRows.Error())
		}
		for i := range int(b.NumCols()) {
			for row := range int(b.NumRows()) {
				v, err := parameter(b.Column(i), row)
				if err != nil {
					return nil, status.Errorf(codes.InvalidArgument, "parameter %d: %v", i+1, err)
				}
				st.Params = append(st.Params, v)
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "read the parameters: %v", err)
	}
	return st.handle()
}

// parameter returns a value as JSON of /api/v1/sql has it: a time is a text.
func parameter(a arrow.Array, row int) (_ any, err error) {
	defer func() {
		if recover() != nil { // such as the end of a text before its beginning
			err = errDamaged
		}
	}()
	if a.IsNull(row) {
		return nil, nil
	}
	switch a := a.(type) {
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		return a.Value(row).ToTime(unit).UTC().Format(time.RFC3339Nano), nil
	case *array.Float64:
		if v := a.Value(row); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is no JSON number: write it in the statement", v)
		}
	case *array.Boolean, *array.String, *array.LargeString, *array.StringView, *array.Float32, *array.Int8, *array.Int16, *array.Int32, *array.Int64,
		*array.Uint8, *array.Uint16, *array.Uint32, *array.Uint64, *array.Date32, *array.Null:
	default:
		return nil, errType
	}
	return a.GetOneForMarshal(row), nil
}

// DoPutCommandStatementUpdate implements flightsql.Server.
func (*service) DoPutCommandStatementUpdate(context.Context, flightsql.StatementUpdate) (int64, error) {
	return 0, readOnly
}

// DoPutPreparedStatementUpdate implements flightsql.Server.
func (*service) DoPutPreparedStatementUpdate(context.Context, flightsql.PreparedStatementUpdate, flight.MessageReader) (int64, error) {
	return 0, readOnly
}

// DoPutCommandStatementIngest implements flightsql.Server.
func (*service) DoPutCommandStatementIngest(context.Context, flightsql.StatementIngest, flight.MessageReader) (int64, error) {
	return 0, readOnly
}

// BeginTransaction implements flightsql.Server.
func (*service) BeginTransaction(context.Context, flightsql.ActionBeginTransactionRequest) ([]byte, error) {
	return nil, readOnly
}
