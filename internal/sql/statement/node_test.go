package statement_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/sql/statement"
)

// TestDecode: numbers that JSON does not have are null, and texts with their names stay.
func TestDecode(t *testing.T) {
	var n statement.Node
	require.NoError(t, statement.Decode([]byte(`{"NaN":"a \\\" -Infinity\n","b":[NaN,-NaN,Infinity,-Infinity,"NaN",-1],"c":{"d":NaN}}`), &n))
	require.Equal(t, statement.Node{
		"NaN": "a \\\" -Infinity\n", "b": []any{nil, nil, nil, nil, "NaN", json.Number("-1")}, "c": map[string]any{"d": nil},
	}, n)
	require.Error(t, statement.Decode([]byte(`{"a":nan}`), &n))
}

// TestAll: a node comes before those inside of it, in the order of the names, and a loop may change
// it or end.
func TestAll(t *testing.T) {
	var n statement.Node
	require.NoError(t, statement.Decode([]byte(`{"id":"0","b":[{"id":"2"},1,[{"id":"3"}]],"a":{"id":"1","drop":{"id":"x"}},"c":{"id":"4"}}`), &n))
	var ids []string
	for x := range n.All() {
		ids = append(ids, x.Text("id"))
		delete(x, "drop")
		if x.Text("id") == "3" {
			break
		}
	}
	require.Equal(t, []string{"0", "1", "2", "3"}, ids)
}
