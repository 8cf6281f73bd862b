package sqlapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		text       string
		statements []string
		rest       string
	}{
		{"", nil, ""},
		{" ;; -- a;\n", nil, ""},
		{"a; b;c", []string{"a", "b"}, "c"},
		{"a\n", nil, "a\n"},
		{"a -- b; c\n;", []string{"a -- b; c"}, ""},
		{"a /* ; */ 'it''s ;' \"x;\"\"\" ; b", []string{`a /* ; */ 'it''s ;' "x;"""`}, "b"},
		{"'open ;", nil, "'open ;"},
		{"/* open ;", nil, "/* open ;"},
		{"$$ ; $$; $tag$ ; $$ $tag$;", []string{"$$ ; $$", "$tag$ ; $$ $tag$"}, ""},
		{"a = $1 AND b = $2; c", []string{"a = $1 AND b = $2"}, "c"},
		{"a - b; ä;", []string{"a - b", "ä"}, ""},
	} {
		statements, rest := Split(tc.text)
		require.Equal(t, tc.statements, statements, tc.text)
		require.Equal(t, tc.rest, rest, tc.text)
	}
}

func TestComplete(t *testing.T) {
	names := []string{"SELECT", "samples", "series", "ts"}
	for _, tc := range []struct {
		line        string
		position    int
		head        string
		completions []string
		tail        string
	}{
		{"SELECT s", 8, "SELECT ", []string{"samples", "series"}, ""},
		{"SE", 2, "", []string{"SELECT"}, ""},
		{"Se", 2, "", []string{"SELECT"}, ""},
		{"sel", 3, "", []string{"SELECT"}, ""},
		{"x FROM samples.t", 16, "x FROM samples.", []string{"ts"}, ""},
		{"ä sa FROM", 4, "ä ", []string{"samples"}, " FROM"},
		{"SELECT ", 7, "SELECT ", nil, ""},
		{"nothing", 7, "", nil, ""},
	} {
		head, completions, tail := Complete(names, tc.line, tc.position)
		require.Equal(t, tc.head, head, tc.line)
		require.Equal(t, tc.completions, completions, tc.line)
		require.Equal(t, tc.tail, tail, tc.line)
	}
}

// typist types lines; the line "^C" is a dropped one.
type typist struct {
	lines   []string
	prompts []string
	history []string
}

func (u *typist) Line(prompt string) (string, error) {
	u.prompts = append(u.prompts, prompt)
	if len(u.lines) == 0 {
		return "", io.EOF
	}
	line := u.lines[0]
	u.lines = u.lines[1:]
	if line == "^C" {
		return "", ErrAborted
	}
	return line, nil
}

func (u *typist) Remember(line string) { u.history = append(u.history, line) }

// session runs lines in a shell whose answers are the statements themselves.
func session(t *testing.T, ask Asker, lines ...string) (asked []string, out string, u *typist) {
	t.Helper()
	u = &typist{lines: lines}
	var b bytes.Buffer
	s := Shell{Terminal: u, Out: &b, Cancellable: context.WithCancel, Ask: func(ctx context.Context, statement string) (*Answer, error) {
		asked = append(asked, statement)
		return ask(ctx, statement)
	}}
	require.NoError(t, s.Run(t.Context()))
	return asked, b.String(), u
}

func answer(rows string) (*Answer, error) {
	return NewAnswer(io.NopCloser(strings.NewReader(`{"status":"success","data":{"columns":[{"name":"a","type":"X"},{"name":"b","type":"Y"}],"rows":[` + rows + `]}}`)))
}

func TestShell(t *testing.T) {
	asked, out, u := session(t, func(_ context.Context, statement string) (*Answer, error) {
		if statement == "bad" {
			return nil, errors.New("it is bad")
		}
		return answer(`[1,null],["x\ny",{"k":"v"}]`)
	}, "SELECT 1", "", "  ;", "bad;", "dropped", "^C", "two; three;", `\d`, `\d samples`, `\help`, `\q`, "after")
	require.Equal(t, []string{"SELECT 1", "bad", "two", "three", tables, `DESCRIBE "samples"`}, asked)
	require.True(t, strings.HasPrefix(out, "a     b\n1     NULL\nx\\ny  {\"k\":\"v\"}\n(2 rows)\nerror: it is bad\n"), out)
	require.Contains(t, out, "Ctrl-C")
	require.Equal(t, []string{prompt, continued, continued, prompt, prompt, continued, prompt}, u.prompts[:7])
	require.Equal(t, []string{"SELECT 1", "  ;", "bad;", "dropped"}, u.history[:4])
}

func TestShellShowsSomeRows(t *testing.T) {
	for _, n := range []int{MostRows, MostRows + 1} {
		_, out, _ := session(t, func(context.Context, string) (*Answer, error) { return answer(strings.Repeat(`[1,2],`, n-1) + `[1,2]`) }, "x;")
		require.Equal(t, MostRows, strings.Count(out, "1  2\n"))
		require.Equal(t, n > MostRows, strings.Contains(out, "the first 1000 rows"))
	}
}

// TestShellPages: the pager gets answers before they are printed, until it is turned off, and a
// statement that runs is shown as long as it runs.
func TestShellPages(t *testing.T) {
	var b bytes.Buffer
	var paged []string
	running := 0
	s := Shell{
		Terminal: &typist{lines: []string{"long;", "short;", `\pager`, `\pager off`, "long;", `\pager on`, "long;"}}, Out: &b,
		Ask: func(_ context.Context, statement string) (*Answer, error) {
			require.Equal(t, 1, running, statement)
			if statement == "long" {
				return answer(`["l","l"]`)
			}
			return answer(`[1,2]`)
		},
		Cancellable: context.WithCancel,
		Page: func(text string) bool {
			require.Zero(t, running)
			if long := strings.Contains(text, "l  l"); long {
				paged = append(paged, text)
				return true
			}
			return false
		},
		Busy: func(ctx context.Context) (context.Context, func()) {
			running++
			return ctx, func() { running-- }
		},
	}
	require.NoError(t, s.Run(t.Context()))
	const long, short = "a  b\nl  l\n(1 row)\n", "a  b\n1  2\n(1 row)\n"
	require.Equal(t, []string{long, long}, paged)
	require.Equal(t, short+help+long, b.String())
}

func TestShellCancels(t *testing.T) {
	var b bytes.Buffer
	u := &typist{lines: []string{"long;", "short;"}}
	s := Shell{
		Terminal: u, Out: &b,
		Ask: func(ctx context.Context, statement string) (*Answer, error) {
			if statement == "long" {
				<-ctx.Done()
				return nil, fmt.Errorf("ask: %w", ctx.Err())
			}
			return answer(`[1,2]`)
		},
		Cancellable: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			if len(u.lines) == 1 {
				cancel()
			}
			return ctx, cancel
		},
	}
	require.NoError(t, s.Run(t.Context()))
	require.Equal(t, "cancelled\na  b\n1  2\n(1 row)\n", b.String())
}

func TestAnswerIsIncomplete(t *testing.T) {
	for _, body := range []string{"", `{"status":"error"}`, `{"status":"success","data":{"columns":[{"name":"a"}],"rows":[[1]`} {
		a, err := NewAnswer(io.NopCloser(strings.NewReader(body)))
		for err == nil {
			_, err = a.Next()
		}
		require.NotErrorIs(t, err, io.EOF, body)
	}
}

func TestNames(t *testing.T) {
	require.Contains(t, Names(t.Context(), func(context.Context, string) (*Answer, error) { return answer(`["samples","ts"]`) }), "ts")
	require.Contains(t, Names(t.Context(), func(context.Context, string) (*Answer, error) { return nil, io.ErrClosedPipe }), "prom_rate(")
}
