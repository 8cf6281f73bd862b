package queryapp_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
)

// damage flips a bit of the first page's body of the only segment of a store, and returns its key.
func damage(t *testing.T, dir string) string {
	t.Helper()
	var paths []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".parquet") {
			paths = append(paths, path)
		}
		return err
	}))
	require.Len(t, paths, 1)
	b, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	b[100] ^= 4
	require.NoError(t, os.Chmod(paths[0], 0o640))
	require.NoError(t, os.WriteFile(paths[0], b, 0o640))
	k, err := filepath.Rel(dir, paths[0])
	require.NoError(t, err)
	return filepath.ToSlash(k)
}

// damagedReads are requests that read the damaged segment.
var damagedReads = []string{
	"/api/v1/query?query=" + "x", "/api/v1/query?query=" + url.QueryEscape("sum(count_over_time(x[1h]))"), "/api/v1/series?match[]=x",
	"/api/v1/labels", "/api/v1/label/job/values",
}

func TestDamagedObjectFailsTheQuery(t *testing.T) {
	u, dir := serveAt(t, settings.Default[queryapp.Settings]())
	k := damage(t, dir)
	for _, path := range damagedReads {
		code, body := get(t, u+path)
		require.Equal(t, 500, code, "%s: %s", path, body)
		for _, part := range []string{k, "samples from 2", "damaged", "--query.partial-response"} {
			require.Contains(t, body, part, path)
		}
	}
}

func TestPartialResponse(t *testing.T) {
	for _, pushed := range []int64{-1, 1} {
		s := settings.Default[queryapp.Settings]()
		s.Query.PartialResponse, s.Query.MinPushedSamples = true, pushed
		u, dir := serveAt(t, s)
		code, body := get(t, u+damagedReads[0])
		require.Equal(t, 200, code)
		require.NotContains(t, body, "warnings")
		k := damage(t, dir)
		u = restart(t, s, dir)
		for _, path := range damagedReads {
			code, body := get(t, u+path)
			require.Equal(t, 200, code, "%s: %s", path, body)
			for _, part := range []string{`"warnings":["the answer is partial: object ` + k, "samples from 2", "was left out"} {
				require.Contains(t, body, part, path)
			}
		}
		write(t, u, "y", "a")
		require.Eventually(t, func() bool { // a listing may be a little older
			_, body = get(t, u+"/api/v1/query?query="+url.QueryEscape(`{__name__=~"x|y"}`)+"&time="+strconv.FormatInt(time.Now().Unix()+1, 10))
			return strings.Contains(body, `"__name__":"y"`)
		}, 2*time.Minute, 50*time.Millisecond)
		require.Contains(t, body, "the answer is partial")
		_, body = get(t, u+"/api/v1/query?query=y&time="+strconv.FormatInt(time.Now().Unix()+1, 10))
		require.Contains(t, body, `"__name__":"y"`)
		require.NotContains(t, body, "warnings", "by its filter, the damaged segment has no y")
	}
}
