package app_test

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/promlake/promlake/internal/app/queryapp"
)

// pieces reads all endpoints of a result at once, and returns the rows of each.
func pieces(ctx context.Context, c *flightsql.Client, info *flight.FlightInfo) ([][]string, error) {
	rows := make([][]string, len(info.Endpoint))
	g := errgroup.Group{}
	for i, e := range info.Endpoint {
		g.Go(func() (err error) {
			rows[i], _, err = rowsOfEndpoint(ctx, c, e)
			return err
		})
	}
	return rows, g.Wait()
}

// startPieces runs two servers over one store that divide what they can. Tenant team-a has samples
// of 12 hours.
func startPieces(t *testing.T) (store string, servers [2]server, clients [2]*flightsql.Client) {
	t.Helper()
	store = t.TempDir()
	for i := range servers {
		servers[i], clients[i] = startFlightOver(t, "file://"+store, func(q *queryapp.Settings) { q.Query.DivideBytes, q.Query.DivideWindows = 1, -1 })
	}
	var all []prompb.TimeSeries
	for _, job := range []string{"x", "y", "z"} {
		s := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "m"}, {Name: "job", Value: job}}}
		for k := range int64(720) {
			s.Samples = append(s.Samples, prompb.Sample{Timestamp: time.Now().UnixMilli() - (719-k)*60_000, Value: math.Sin(float64(k)) + float64(len(all))})
		}
		all = append(all, s)
	}
	client, err := remote.NewAPI(servers[0].url, remote.WithAPIHTTPClient(&http.Client{Transport: caller{token: "a"}}))
	require.NoError(t, err)
	_, err = client.Write(t.Context(), remote.WriteV1MessageType, &prompb.WriteRequest{Timeseries: all})
	require.NoError(t, err)
	return store, servers, clients
}

// TestFlightPieces: a statement that can be divided has an endpoint for each piece, which another
// process answers; all of them together have the rows of the statement.
func TestFlightPieces(t *testing.T) {
	_, servers, clients := startPieces(t)
	ctx := as(t, "a", "")
	queries := func() (n int) {
		_, body := caller{token: "a"}.get(t, servers[0].url+"/api/v1/status/spending")
		var spent struct {
			Data struct {
				Sources []struct {
					Kind, Name string
					Queries    int
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &spent), body)
		for _, s := range spent.Data.Sources {
			if s.Kind == "client" && s.Name == "grpc-go" {
				n += s.Queries
			}
		}
		return n
	}
	now := "'" + time.Now().UTC().Format("2006-01-02 15:04:05") + "'::TIMESTAMPTZ"
	for i, text := range []string{"SELECT labels['job'], ts, value FROM promql('rate(m[5m]) + 1', " + now + " - INTERVAL 10 HOUR, " + now + ", '1m') WHERE value > 0.9", "FROM samples WHERE metric = 'm'"} {
		before := queries()
		info, err := clients[0].Execute(ctx, text)
		require.NoError(t, err)
		require.Len(t, info.Endpoint, 16, text)
		require.EqualValues(t, -1, info.TotalRecords)
		require.False(t, info.Ordered)
		got, err := pieces(ctx, clients[i], info)
		require.NoError(t, err, text)
		require.Equal(t, before+1, queries(), "one query")
		undivided, err := clients[1].Execute(ctx, "WITH all_rows AS ("+text+") FROM all_rows")
		require.NoError(t, err)
		require.Len(t, undivided.Endpoint, 1)
		want, schema, err := rowsOf(ctx, clients[1], undivided)
		require.NoError(t, err)
		require.Greater(t, len(want), 1000)
		planned, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		require.True(t, schema.Equal(planned), "%s: %s", schema, planned)
		rows := slices.Concat(got...)
		slices.Sort(rows)
		slices.Sort(want)
		require.Equal(t, want, rows, text)
	}
	before := queries()
	_, err := run(ctx, clients[0], "SELECT ts, value FROM samples ORDER BY ts")
	require.NoError(t, err)
	require.Equal(t, before+1, queries())

	p, err := clients[0].Prepare(ctx, "SELECT value FROM samples WHERE labels['job'] = $1 AND ts > now() - INTERVAL 1 YEAR")
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "1", Type: arrow.BinaryTypes.String}}, nil))
	b.Field(0).(*array.StringBuilder).Append("y")
	p.SetParameters(b.NewRecordBatch())
	info, err := p.Execute(ctx)
	require.NoError(t, err)
	require.Len(t, info.Endpoint, 16)
	rows, err := pieces(ctx, clients[1], info)
	require.NoError(t, err)
	require.Len(t, slices.Concat(rows...), 720)
	for _, s := range servers {
		s.end(t)
	}
}

// TestFlightTickets: a ticket gives nobody rights, and a bad one has an error that says why.
func TestFlightTickets(t *testing.T) {
	store, servers, clients := startPieces(t)
	info, err := clients[0].Execute(as(t, "a", ""), "FROM samples")
	require.NoError(t, err)
	good := info.Endpoint[0]
	read := func(ctx context.Context, ticket []byte) error {
		_, _, err := rowsOfEndpoint(ctx, clients[1], &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}})
		return err
	}
	require.NoError(t, read(as(t, "all", ""), good.Ticket.Ticket), "it has its tenant")
	for _, tc := range []struct {
		token, tenant string
		code          codes.Code
		want          string
	}{
		{"", "", codes.Unauthenticated, "this server requires a token"},
		{"b", "", codes.PermissionDenied, `the token is not for tenant "team-a"`},
		{"b", "team-b", codes.InvalidArgument, `the snapshot is of tenant "team-a", the request of "team-b"`},
		{"w", "", codes.PermissionDenied, `lacks access "read"`},
	} {
		err := read(as(t, tc.token, tc.tenant), good.Ticket.Ticket)
		require.Equal(t, tc.code, status.Code(err), "%s: %v", tc.want, err)
		require.ErrorContains(t, err, tc.want)
	}
	ticket, err := flightsql.GetStatementQueryTicket(good.Ticket)
	require.NoError(t, err)
	handle := string(ticket.GetStatementHandle())
	for changed, want := range map[string]string{
		"":                              "not one of a statement",
		"FROM samples":                  "not one of a statement",
		handle[:len(handle)/2]:          "not one of a statement",
		`{"version":1}`:                 "not one of a statement",
		`{"version":1,"query":"SELEC"}`: "syntax error",
		`{"version":1,"query":"SELECT 1","snapshot":5}`:                      "read a snapshot",
		strings.Replace(handle, `"version":1`, `"version":2`, 1):             "has version 2, and this server knows 1: execute, or prepare, the statement again",
		strings.Replace(handle, `{"version":1,"ten`, `{"version":3,"ten`, 1): "version 3, this process knows 1",
		strings.Replace(handle, `"min_t":`, `"min_t":9`, 1):                  "its snapshot has",
		strings.Replace(handle, `"lookback":`, `"lookback":1`, 1):            "settings of this process differ",
	} {
		require.NotEqual(t, handle, changed, want)
		bad, err := flightsql.CreateStatementQueryTicket([]byte(changed))
		require.NoError(t, err)
		err = read(as(t, "a", ""), bad)
		require.Contains(t, []codes.Code{codes.InvalidArgument, codes.FailedPrecondition}, status.Code(err), "%s: %v", changed, err)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, codes.InvalidArgument, status.Code(read(as(t, "a", ""), []byte("x"))))

	found, err := filepath.Glob(filepath.Join(store, "v1/team-a/segments/*/*"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, name := range found {
		require.NoError(t, os.Remove(name))
	}
	third, c := startFlightOver(t, "file://"+store, func(*queryapp.Settings) {})
	_, _, err = rowsOfEndpoint(as(t, "a", ""), c, good)
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "an object of the snapshot is gone")
	for _, s := range append(servers[:], third) {
		s.end(t)
	}
}
