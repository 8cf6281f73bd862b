package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/flags"
)

// promlake runs the program and returns what it prints.
func promlake(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	require.Zero(t, run(t.Context(), args, flags.Streams{Out: &out, Err: &log}), log.String())
	return out.String(), log.String()
}

func TestTokenAddsToADocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	var tokens []string
	for _, args := range [][]string{
		{"--tenant=team-a", "--access=write,read", "--comment=the fleet"},
		{"--tenant=team-a,team-b", "--tenant=team-c", "--access=read"},
		{"--tenant=*", "--access=admin"},
	} {
		stdout, stderr := promlake(t, append([]string{"token", "--tokens=" + file}, args...)...)
		require.Regexp(t, `^pl_[A-Za-z0-9_-]{43}\n$`, stdout)
		require.Empty(t, stderr)
		tokens = append(tokens, strings.TrimSpace(stdout))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d, err := auth.ParseDocument(text)
	require.NoError(t, err)
	require.Equal(t, []auth.Entry{
		{SHA256: auth.SumOf(tokens[0]), Tenants: []string{"team-a"}, Access: []string{"write", "read"}, Comment: "the fleet"},
		{SHA256: auth.SumOf(tokens[1]), Tenants: []string{"team-a", "team-b", "team-c"}, Access: []string{"read"}},
		{SHA256: auth.SumOf(tokens[2]), Tenants: []string{"*"}, Access: []string{"admin"}},
	}, d.Tokens)
	require.NotContains(t, string(text), tokens[0])

	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left beside it")
}

// TestTokenOfAPrincipal: no token is made for an entry of a principal.
func TestTokenOfAPrincipal(t *testing.T) {
	const arn = "arn:aws:iam::123456789012:role/prometheus"
	const entry = `{"principal":"` + arn + `","tenants":["team-a"],"access":["write"]`
	stdout, _ := promlake(t, "token", "--principal="+arn, "--tenant=team-a", "--access=write", "--comment=EKS")
	require.Equal(t, entry+`,"comment":"EKS"}`+"\n", stdout)

	file := filepath.Join(t.TempDir(), "tokens.json")
	promlake(t, "token", "--tenant=team-a", "--access=read", "--tokens="+file)
	stdout, stderr := promlake(t, "token", "--principal="+arn, "--tenant=team-a", "--access=write", "--tokens="+file)
	require.Equal(t, entry+"}\n", stdout+stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d, err := auth.ParseDocument(text)
	require.NoError(t, err)
	require.Len(t, d.Tokens, 2)
	require.Equal(t, auth.Entry{Principal: arn, Tenants: []string{"team-a"}, Access: []string{"write"}}, d.Tokens[1])

	for arg, want := range map[string]string{
		"arn:aws:sts::123456789012:assumed-role/x/s":    "principal: want arn:aws:iam::ACCOUNT:role/NAME",
		"arn:aws:iam::123456789012:role/eks/prometheus": "entry 3: has the token or principal of entry 2",
	} {
		var out, log bytes.Buffer
		require.Equal(t, 1, run(t.Context(), []string{"token", "--principal=" + arg, "--tenant=a", "--access=read", "--tokens=" + file}, flags.Streams{Out: &out, Err: &log}))
		require.Empty(t, out.String())
		require.Contains(t, log.String(), want)
	}
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), string(after))
}

func TestTokenKeepsWhatTheFileIs(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "tokens.json"), filepath.Join(dir, "link.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"version":1,"tokens":[]}`), 0o640))
	require.NoError(t, os.Symlink("tokens.json", link))
	promlake(t, "token", "--tenant=a", "--access=read", "--tokens="+link)
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}

func TestTokenLeavesAWrongDocumentAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	wrong := `{"version":1,"tokens":[{}]}`
	require.NoError(t, os.WriteFile(file, []byte(wrong), 0o600))
	var out, log bytes.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"token", "--tenant=a", "--access=read", "--tokens=" + file}, flags.Streams{Out: &out, Err: &log}))
	require.Empty(t, out.String(), "no token is given that nobody knows")
	require.Contains(t, log.String(), "entry 1: sha256")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, wrong, string(text))
}

// TestTokenTellsWhatAParameterHolds counts the entries that fit.
func TestTokenTellsWhatAParameterHolds(t *testing.T) {
	d := auth.Document{Version: auth.Version}
	fits := map[int]int{}
	for n := 1; n <= 80; n++ {
		e, err := auth.NewEntry(auth.NewToken(), []string{"team-a"}, []string{"read", "write"}, "twelve bytes")
		require.NoError(t, err)
		d.Tokens = append(d.Tokens, e)
		text, err := d.Text()
		require.NoError(t, err)
		for _, limit := range []int{standardParameter, advancedParameter} {
			if len(text) <= limit {
				fits[limit] = n
			}
		}
	}
	t.Log("entries that fit:", fits)
	require.Empty(t, sizeNote(standardParameter))
	require.Contains(t, sizeNote(standardParameter+1), "only an advanced one holds it")
	require.Contains(t, sizeNote(advancedParameter+1), "only a file holds it")
}

// TestQueryWithAToken sends a query with a token to a guarded server. The server answers with the
// tenant for which it evaluated the query.
func TestQueryWithAToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	stdout, _ := promlake(t, "token", "--tenant=team-a", "--access=read", "--tokens="+file)
	token := strings.TrimSpace(stdout)
	g, err := auth.New(auth.Settings{Tokens: "file:" + file}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	srv := httptest.NewServer(g.Protect(auth.Read, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"string","result":[1,"`+r.Header.Get("X-Scope-OrgID")+`"]}}`)
	})))
	defer srv.Close()

	ask := func(args ...string) (int, string) {
		var out, log bytes.Buffer
		code := run(t.Context(), append([]string{"query", "--url=" + srv.URL, "up"}, args...), flags.Streams{Out: &out, Err: &log})
		return code, out.String() + log.String()
	}
	code, text := ask()
	require.Equal(t, 1, code)
	require.Contains(t, text, "query: unauthorized: this server requires a token")
	code, text = ask("--token=" + token)
	require.Zero(t, code, text)
	require.Contains(t, text, "team-a")
	code, text = ask("--token="+token, "--tenant=team-b")
	require.Equal(t, 1, code)
	require.Contains(t, text, `query: forbidden: the token is not for tenant "team-b"`)
	t.Setenv("PROMLAKE_TOKEN", token)
	code, text = ask("--tenant=team-a")
	require.Zero(t, code, text)
	require.Contains(t, text, "team-a")
}
