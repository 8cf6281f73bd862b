package sql

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/sql/encode"
)

const secret = "s3cr3t-of-the-host"

// TestLockedDatabase: even without the rules, a statement's database neither reads nor writes
// files, and its configuration stays as it is.
func TestLockedDatabase(t *testing.T) {
	t.Setenv("PROMLAKE_TEST_SECRET", secret)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.csv")
	require.NoError(t, os.WriteFile(path, []byte("column0\n"+secret+"\n"), 0o600))
	text, err := os.ReadFile(filepath.Join("..", "..", "tests", "sql", "testdata", "hostile.sql"))
	require.NoError(t, err)
	names := strings.NewReplacer("{dir}", dir, "{out}", filepath.Join(dir, "out"), "{file}", path, "{json}", path, "{parquet}", path, "{db}", path)
	r := New(Parts{Settings: Settings{MemoryBytes: 64 << 20, SpillBytes: 1 << 20, Threads: 1}, Work: &tempdir.WorkDir{Configured: t.TempDir()}, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { require.NoError(t, errors.Join(r.Close(), r.Work.Close())) })
	rules, _, found := strings.Cut(string(text), "-- Types whose fields double\n")
	require.True(t, found, "types of any size are the rules' alone")
	for _, line := range strings.Split(rules, "\n") {
		if line == "" || strings.HasPrefix(line, "-- ") || strings.Contains(line, "00000000") || strings.Contains(line, "sleep") {
			continue // values of any size are the rules' alone
		}
		x := &execution{Runner: r, ctx: t.Context(), metrics: map[string]*metricTable{}}
		require.NoError(t, x.enter(false))
		require.NotContains(t, answerOf(x, names.Replace(line)), secret, line)
		for setting, want := range map[string]string{"enable_external_access": "false", "lock_configuration": "true"} {
			require.Equal(t, "v\n"+want+"\n", answerOf(x, "SELECT current_setting('"+setting+"')::VARCHAR AS v"), line)
		}
		require.NoError(t, x.exit(false))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "files appeared")
}

// answerOf runs a statement that no rule has seen, and returns its rows as CSV, or its error.
func answerOf(x *execution, text string) string {
	rows, err := x.db.Stream(x.ctx, text)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	types := rows.Types()
	columns := make([]encode.Column, len(types))
	for i, n := range rows.Names() {
		columns[i].Name = n
	}
	conv, err := encode.NewConverter(rows.Connection(), rows.Names(), types)
	if err != nil {
		return err.Error()
	}
	defer conv.Close()
	var out strings.Builder
	w, err := encode.New(encode.CSV, &out, conv.Schema(), columns)
	for err == nil && rows.Next() {
		var b arrow.RecordBatch
		if b, err = conv.Batch(rows.Chunk()); err == nil {
			err = w.Write(b)
			b.Release()
		}
	}
	if err = errors.Join(err, rows.Err()); err != nil {
		return err.Error()
	}
	if err := w.End(nil); err != nil {
		return err.Error()
	}
	return out.String()
}
