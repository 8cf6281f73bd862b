package sql

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestDocumentedStatements: every statement of the documentation that is for the endpoint runs.
func TestDocumentedStatements(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	var rows []segment.Row
	for _, name := range []string{"http_requests_total", "node_load1", "node_uname_info", "up"} {
		row := segment.Row{Labels: laketest.Metric(name, "instance", "a", "job", "api", "release", "6.1")}
		for at := time.Now().UnixMilli() - hour; at <= time.Now().UnixMilli(); at += minute { // now() is the time of the machine
			row.Floats = append(row.Floats, segment.Float{T: at, V: 1})
		}
		rows = append(rows, row)
	}
	l.Write("anonymous", rows)
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "sql.md"))
	require.NoError(t, err)
	n := 0
	for _, block := range regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], ".read ") {
			continue // over files: tests/e2e
		}
		for statement := range strings.SplitSeq(block[1], ";\n") {
			if statement = strings.TrimSpace(statement); statement != "" {
				n++
				require.NoError(t, l.SQL(t.Context(), query.Statement{Text: statement, Format: "csv"}, &laketest.Result{}), statement)
			}
		}
	}
	require.Greater(t, n, 8)
}
