package app_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
)

// startFlight runs a server that speaks Flight SQL, with tokens for two tenants, each of which has
// a metric, and returns a client.
func startFlight(t *testing.T, change func(*queryapp.Settings)) (server, *flightsql.Client) {
	t.Helper()
	srv, c := startFlightOver(t, "file://"+t.TempDir(), change)
	require.NoError(t, caller{token: "a"}.write(t, srv.url, "of_a"))
	require.NoError(t, caller{token: "b"}.write(t, srv.url, "of_b"))
	return srv, c
}

// startFlightOver runs a server as startFlight does, over a store.
func startFlightOver(t *testing.T, store string, change func(*queryapp.Settings)) (server, *flightsql.Client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.json")
	writeDocument(t, file, auth.Document{Version: auth.Version, Tokens: []auth.Entry{
		entry(t, "a", "team-a", "read,write"), entry(t, "b", "team-b", "read,write"), entry(t, "w", "team-a", "write"), entry(t, "all", "*", "read"), entry(t, "ops", "*", "admin"),
	}})
	s := process.DefaultSettings()
	s.Listen, s.Store, s.Auth.Tokens = "127.0.0.1:0", store, "file:"+file
	q := settings.Default[queryapp.Settings]()
	change(&q)
	set := settings.Default[app.FlightSettings]()
	set.Listen, set.MaxConnections = "127.0.0.1:0", 4
	f := app.NewFlight(set)
	srv := startFunc(t, func(ctx context.Context, _ io.Writer, logger *slog.Logger) error {
		return process.Run(ctx, s, logger, ingestapp.New(nil, settings.Default[ingest.Settings]()), queryapp.New(q), f.Build)
	})
	srv.flight = f.Addr()
	c, err := flightsql.NewClient(f.Addr(), nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return srv, c
}

// as returns a context with a token, and a tenant if it is not "".
func as(t *testing.T, token, tenant string) context.Context {
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	if tenant != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-scope-orgid", tenant)
	}
	return ctx
}

// rowsOf reads a result.
func rowsOf(ctx context.Context, c *flightsql.Client, info *flight.FlightInfo) (rows []string, schema *arrow.Schema, err error) {
	return rowsOfEndpoint(ctx, c, info.Endpoint[0])
}

// rowsOfEndpoint reads one endpoint of a result.
func rowsOfEndpoint(ctx context.Context, c *flightsql.Client, of *flight.FlightEndpoint) (rows []string, schema *arrow.Schema, err error) {
	r, err := c.DoGet(ctx, of.Ticket)
	if err != nil {
		return nil, nil, err
	}
	defer r.Release()
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			var cells []string
			for _, column := range b.Columns() {
				cells = append(cells, column.ValueStr(i))
			}
			rows = append(rows, strings.Join(cells, ","))
		}
	}
	return rows, r.Schema(), r.Err()
}

func run(ctx context.Context, c *flightsql.Client, text string) ([]string, error) {
	info, err := c.Execute(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, _, err := rowsOf(ctx, c, info)
	return rows, err
}

// TestFlightSQL: statements have the rows, the tenants and the errors of /api/v1/sql.
func TestFlightSQL(t *testing.T) {
	srv, c := startFlight(t, func(q *queryapp.Settings) { q.Query.SQL.MaxRows = 5000 })
	const all = "SELECT metric, labels, value FROM samples"
	rows, err := run(as(t, "a", ""), c, all)
	require.NoError(t, err)
	require.Equal(t, []string{"of_a,[],1"}, rows)
	_, body := caller{token: "a"}.get(t, srv.url+"/api/v1/sql?format=csv&query="+url.QueryEscape(all))
	require.Equal(t, "metric,labels,value\nof_a,{},1\n", body)
	_, body = caller{token: "a"}.get(t, srv.url+"/api/v1/status/spending")
	require.Contains(t, body, `"kind":"client","name":"grpc-go"`)
	rows, err = run(as(t, "all", "team-b"), c, all)
	require.NoError(t, err)
	require.Equal(t, []string{"of_b,[],1"}, rows)
	rows, err = run(as(t, "a", ""), c, "SELECT i FROM range(5000) t(i)")
	require.NoError(t, err)
	require.Len(t, rows, 5000)

	for _, tc := range []struct {
		token, tenant, text string
		code                codes.Code
		want                string
	}{
		{"", "", all, codes.Unauthenticated, "this server requires a token"},
		{"c", "", all, codes.Unauthenticated, "the token is not known"},
		{"a", "team-b", all, codes.PermissionDenied, `the token is not for tenant "team-b"`},
		{"w", "", all, codes.PermissionDenied, `lacks access "read"`},
		{"a", "", "SELEC 1", codes.InvalidArgument, "syntax error"},
		{"a", "", "DELETE FROM samples", codes.InvalidArgument, "the statement is not a query"},
		{"a", "", "FROM read_csv('/etc/passwd')", codes.InvalidArgument, "read_csv"},
		{"a", "", "SELECT nothing FROM samples", codes.InvalidArgument, "nothing"},
		{"a", "", "SELECT 'x'::INTEGER + count(*) FROM samples", codes.FailedPrecondition, "Could not convert"},
		{"a", "", "SELECT count(*) FROM samples WHERE metric = $1", codes.InvalidArgument, "1 parameters"},
		{"a", "", "FROM range(5001)", codes.FailedPrecondition, "--sql.max-rows"},
	} {
		_, err := run(as(t, tc.token, tc.tenant), c, tc.text)
		require.Equal(t, tc.code, status.Code(err), "%s: %v", tc.text, err)
		require.ErrorContains(t, err, tc.want)
	}
	ctx := as(t, "a", "")
	_, err = c.ExecuteUpdate(ctx, "DELETE FROM samples")
	require.ErrorContains(t, err, "SQL only reads")
	_, err = c.BeginTransaction(ctx)
	require.ErrorContains(t, err, "SQL only reads")
	srv.end(t)
}

// TestFlightPrepared: prepared statements take their parameters, also again.
func TestFlightPrepared(t *testing.T) {
	srv, c := startFlight(t, func(*queryapp.Settings) {})
	ctx := as(t, "a", "")
	p, err := c.Prepare(ctx, "SELECT metric, value FROM samples WHERE metric = $1 AND ts <= $2 AND value < $3")
	require.NoError(t, err)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "1", Type: arrow.BinaryTypes.String}, {Name: "2", Type: arrow.FixedWidthTypes.Timestamp_us}, {Name: "3", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	for name, want := range map[string][]string{"of_a": {"of_a,1"}, "of_b": nil} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.StringBuilder).Append(name)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(time.Now().Add(time.Hour).UnixMicro()))
		b.Field(2).(*array.Int64Builder).Append(2)
		p.SetParameters(b.NewRecordBatch())
		info, err := p.Execute(ctx)
		require.NoError(t, err)
		rows, _, err := rowsOf(ctx, c, info)
		require.NoError(t, err)
		require.Equal(t, want, rows)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "1", Type: arrow.BinaryTypes.String}}, nil))
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"x", "y"}, nil)
	p.SetParameters(b.NewRecordBatch())
	_, err = p.Execute(ctx)
	require.ErrorContains(t, err, "more than one row")
	require.NoError(t, p.Close(ctx))

	plain, err := c.Prepare(ctx, "SELECT metric, value FROM samples")
	require.NoError(t, err)
	require.Equal(t, "metric", plain.DatasetSchema().Field(0).Name, "known without parameters")
	_, err = c.Prepare(as(t, "", ""), "SELECT 1")
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	srv.end(t)
}

// TestFlightCatalog: clients find the tables and their columns, and that the server only reads.
func TestFlightCatalog(t *testing.T) {
	srv, c := startFlight(t, func(*queryapp.Settings) {})
	ctx := as(t, "a", "")
	get := func(info *flight.FlightInfo, err error) []string {
		t.Helper()
		require.NoError(t, err)
		rows, _, err := rowsOf(ctx, c, info)
		require.NoError(t, err)
		return rows
	}
	require.Equal(t, []string{"memory"}, get(c.GetCatalogs(ctx)))
	require.Equal(t, []string{"memory,main"}, get(c.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{})))
	require.Equal(t, []string{"VIEW"}, get(c.GetTableTypes(ctx)))
	pattern, other := "rollup_%", "x"
	require.Equal(t, []string{"memory,main,rollup_1h,VIEW", "memory,main,rollup_5m,VIEW"}, get(c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &pattern})))
	require.Empty(t, get(c.GetTables(ctx, &flightsql.GetTablesOpts{DbSchemaFilterPattern: &other})))
	require.Empty(t, get(c.GetTables(ctx, &flightsql.GetTablesOpts{TableTypes: []string{"TABLE"}})))
	name := "samples"
	info, err := c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &name, IncludeSchema: true})
	require.NoError(t, err)
	r, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	schema, err := flight.DeserializeSchema(r.RecordBatch().Column(4).(*array.Binary).Value(0), memory.DefaultAllocator)
	require.NoError(t, err)
	var columns []string
	for _, f := range schema.Fields() {
		columns = append(columns, f.Name)
	}
	require.Equal(t, []string{"metric", "labels", "ts", "value"}, columns)
	for _, q := range []string{"FROM memory.main.samples", "FROM main.samples"} {
		rows, err := run(ctx, c, "SELECT metric "+q)
		require.NoError(t, err, q)
		require.Equal(t, []string{"of_a"}, rows, q)
	}
	infos := get(c.GetSqlInfo(ctx, []flightsql.SqlInfo{flightsql.SqlInfoFlightSqlServerName, flightsql.SqlInfoFlightSqlServerReadOnly}))
	require.Contains(t, fmt.Sprint(infos), "Promlake")
	require.Contains(t, fmt.Sprint(infos), "true")
	_, err = run(as(t, "", ""), c, "SHOW TABLES")
	require.Equal(t, codes.Unauthenticated, status.Code(err))

	basic, err := c.Client.AuthenticateBasicToken(t.Context(), "anybody", "a")
	require.NoError(t, err)
	rows, err := run(basic, c, "SELECT metric FROM samples")
	require.NoError(t, err)
	require.Equal(t, []string{"of_a"}, rows)
	srv.end(t)
}

// TestFlightConnections: a connection that makes no call gives way to one that does.
func TestFlightConnections(t *testing.T) {
	srv, c := startFlight(t, func(*queryapp.Settings) {})
	for range 3 {
		for range 8 {
			conn, err := net.Dial("tcp", srv.flight)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
		}
		require.Eventually(t, func() bool { // a call may meet a connection that was just closed
			rows, err := run(as(t, "a", ""), c, "SELECT metric FROM samples")
			return err == nil && len(rows) == 1
		}, 2*time.Minute, time.Millisecond)
	}
	srv.end(t)
}

// TestFlightCancel: a statement that runs ends with its client.
func TestFlightCancel(t *testing.T) {
	srv, c := startFlight(t, func(q *queryapp.Settings) { q.Query.MaxConcurrency = 1 })
	ctx, cancel := context.WithCancel(as(t, "a", ""))
	info, err := c.Execute(ctx, "SELECT count(*) FROM range(3000000) a, range(3000000) b WHERE a.range + b.range = 7")
	require.NoError(t, err)
	ended, others := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := rowsOf(ctx, c, info)
		ended <- err
	}()
	ask := func() {
		_, err := run(as(t, "a", ""), c, "SELECT 1")
		others <- err
	}
	go ask()
	require.Eventually(t, func() bool { // another statement waits for the turn
		select {
		case err := <-others: // it was first
			require.NoError(t, err)
			go ask()
		default:
		}
		_, metrics := caller{token: "ops"}.get(t, srv.url+"/metrics")
		return strings.Contains(metrics, "promlake_query_waiting 1\n")
	}, 2*time.Minute, 10*time.Millisecond)
	cancel()
	require.Equal(t, codes.Canceled, status.Code(<-ended))
	require.NoError(t, <-others)
	srv.end(t)
}

// TestFlightSlowReader: a client that does not read its rows keeps no other statement waiting.
func TestFlightSlowReader(t *testing.T) {
	srv, c := startFlight(t, func(q *queryapp.Settings) { q.Query.MaxConcurrency = 1 })
	ctx, cancel := context.WithCancel(as(t, "a", ""))
	const many = 1_000_000
	var slow [2]*flight.Reader
	for i := range slow {
		info, err := c.Execute(ctx, fmt.Sprintf("FROM range(%d)", many))
		require.NoError(t, err)
		slow[i], err = c.DoGet(ctx, info.Endpoint[0].Ticket)
		require.NoError(t, err)
		defer slow[i].Release()
		require.True(t, slow[i].Next())
	}
	rows, err := run(as(t, "a", ""), c, "SELECT 1")
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, rows)
	n := slow[1].RecordBatch().NumRows()
	for slow[1].Next() {
		n += slow[1].RecordBatch().NumRows()
	}
	require.NoError(t, slow[1].Err())
	require.EqualValues(t, many, n)
	cancel()
	for slow[0].Next() {
	}
	require.Equal(t, codes.Canceled, status.Code(slow[0].Err()))
	srv.end(t)
}
