package functions

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"
)

// TestSQL: the query function answers SQL, as JSON and as an Arrow stream, through the HTTP API and
// through its URL.
func TestSQL(t *testing.T) {
	s := start(t, "PROMLAKE_INGEST_MODE=direct")
	a := ask(t, s.ingest, recorded(t, "http-api-write-v1"))
	require.Equal(t, 204, a.Status, a.Body)
	text := "SELECT labels['instance'] AS instance, arg_max(value, ts) AS value FROM samples WHERE metric LIKE '%load1' GROUP BY ALL ORDER BY ALL"
	for _, event := range []string{"http-api-query", "function-url-query"} {
		e := asking(t, event, "/api/v1/sql", url.Values{"query": {text}}.Encode())
		got := plain(t, ask(t, s.query, e))
		require.Equal(t, 200, got.Status, got.Body)
		require.Contains(t, got.Body, `"rows":[["host-0:9100",0.75],["host-1:9100",1.75],["host-2:9100",2.75]]`)

		e = asking(t, event, "/api/v1/sql", url.Values{"query": {text}, "format": {"arrow"}}.Encode())
		got = plain(t, ask(t, s.query, e))
		r, err := ipc.NewReader(strings.NewReader(got.Body))
		require.NoError(t, err)
		require.True(t, r.Next())
		require.Equal(t, int64(3), r.RecordBatch().NumRows())

		refused := ask(t, s.query, asking(t, event, "/api/v1/sql", url.Values{"query": {"FROM '/etc/passwd'"}}.Encode()))
		require.Equal(t, 400, refused.Status)
	}
	e := recorded(t, "http-api-query-range-form")
	e["rawPath"], e["rawQueryString"] = "/api/v1/sql", ""
	e["body"], e["isBase64Encoded"] = base64.StdEncoding.EncodeToString([]byte(url.Values{"query": {"SELECT count(*) AS n FROM samples"}, "format": {"csv"}}.Encode())), true
	got := plain(t, ask(t, s.query, e))
	require.Equal(t, "n\n6\n", got.Body)
}
