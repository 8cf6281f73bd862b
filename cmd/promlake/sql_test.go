package main

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
)

// TestSQLCommand: a server, a store and local files are asked with the same command.
func TestSQLCommand(t *testing.T) {
	store := filled(t)
	s := process.DefaultSettings()
	s.Store = store
	h, done, err := process.Open(t.Context(), s, slog.New(slog.DiscardHandler), queryapp.New(settings.Default[queryapp.Settings]()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, done()) })
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	sql := func(args ...string) (code int, out, errs string) {
		var o, e bytes.Buffer
		code = run(t.Context(), append([]string{"sql"}, args...), flags.Streams{Out: &o, Err: &e})
		return code, o.String(), e.String()
	}
	for _, source := range []string{"--store=" + store, "--url=" + srv.URL + "/"} {
		code, out, errs := sql(source, "SELECT labels['job'] AS job, max(value) AS m FROM samples WHERE metric = $1 AND value >= $2 GROUP BY ALL ORDER BY ALL", "--param=up", "--param=1")
		require.Zero(t, code, errs)
		require.Equal(t, "job,m\na,1\nb,1\nc,1\n", out)
		code, out, errs = sql(source, "SELECT max(value) AS m FROM samples", "--tenant=other", "--format=json")
		require.Zero(t, code, errs)
		require.Equal(t, `{"status":"success","data":{"columns":[{"name":"m","type":"DOUBLE"}],"rows":[[2]]}}`, out)
		for text, want := range map[string]string{
			"DROP VIEW samples":               "bad_data: the statement is not a query",
			"SELECT metric::INT FROM samples": "execution: Conversion Error",
			"SELECT CASE WHEN range = 900000 THEN error('midway') ELSE 'x' || range END FROM range(1000000)": "result, which is incomplete",
		} {
			code, _, errs = sql(source, text)
			require.NotZero(t, code, text)
			if want != "result, which is incomplete" || source != "--store="+store {
				require.Contains(t, errs, want)
			} else {
				require.Contains(t, errs, "the answer was broken off")
			}
		}
	}
	code, out, errs := sql("SELECT 1 AS a")
	require.Zero(t, code, errs)
	require.Equal(t, "a\n1\n", out)
	// Queries in a file and from a pipe run until one fails.
	file := filepath.Join(t.TempDir(), "report.sql")
	require.NoError(t, os.WriteFile(file, []byte("SELECT 1 AS a, NULL AS b; -- first; one\nSELECT ';' AS c;\nbogus;\nSELECT 2"), 0o600))
	for _, args := range [][]string{{"-f", file}, {"-f", file, "--store=" + store}} {
		code, out, errs = sql(append(args, "--format=table")...)
		require.Equal(t, 1, code)
		require.Equal(t, "a  b\n1  NULL\n(1 row)\n\nc\n;\n(1 row)\n\n", out)
		require.Contains(t, errs, "bogus")
	}
	for _, args := range [][]string{nil, {"-"}} {
		var o, e bytes.Buffer
		require.Zero(t, run(t.Context(), append([]string{"sql"}, args...), flags.Streams{In: strings.NewReader("SELECT 1 AS a; SELECT '' AS b"), Out: &o, Err: &e}), e.String())
		require.Equal(t, "a\n1\n\nb\n\"\"\n", o.String())
	}
	for _, args := range [][]string{{"SELECT 1", "-f", file}, {"SELECT 1; SELECT 2", "--format=parquet", "--store=" + store}, {"SELECT 1", "--url=x", "--store=y"}, {"SELECT 1", "--param=1"}, {"SELECT 1", "--format=arrow"}, {"--store=" + store}} {
		code, _, errs = sql(args...)
		require.NotZero(t, code, args)
		require.Regexp(t, "--|on a terminal only", errs)
	}
}
