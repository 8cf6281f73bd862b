package functions

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// stack is the three functions over one store.
type stack struct {
	store                  string // directory
	ingest, query, compact *emulator.Function
}

func start(t *testing.T, env ...string) *stack {
	t.Helper()
	s := &stack{store: t.TempDir()}
	env = append([]string{"PROMLAKE_STORE=file://" + s.store, "PROMLAKE_COMPACTOR_SETTLE_DELAY=1ms", "PROMLAKE_COMPACTOR_LATE_DELAY=1ms"}, env...)
	f := func(program string) *emulator.Function {
		return lambdatest.Start(t, emulator.Settings{Path: programs[program], Name: program, Env: env})
	}
	s.ingest, s.query, s.compact = f("ingest-fn"), f("query-fn"), f("compact-fn")
	return s
}

// event is a recorded event, which a test may change.
type event map[string]any

func recorded(t testing.TB, name string) event {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "internal", "aws", "lambda", "testdata", name+".json"))
	require.NoError(t, err)
	var e event
	require.NoError(t, json.Unmarshal(b, &e))
	return e
}

// asking returns a recorded request with another path and query.
func asking(t testing.TB, name, path, query string) event {
	t.Helper()
	e := recorded(t, name)
	e["rawPath"], e["rawQueryString"] = path, query
	return e
}

// message returns the recorded batch with one message, sent now.
func message(t testing.TB, name, body string) event {
	t.Helper()
	e := recorded(t, name)
	r := e["Records"].([]any)[0].(map[string]any)
	r["body"] = body
	// The ingest function rejects a message that was sent weeks ago.
	r["attributes"].(map[string]any)["SentTimestamp"] = strconv.FormatInt(time.Now().UnixMilli(), 10)
	e["Records"] = []any{r}
	return e
}

func (e event) payload(t testing.TB) []byte {
	t.Helper()
	b, err := json.Marshal(e)
	require.NoError(t, err)
	return b
}

// answer is an answer of payload format 2.0.
type answer struct {
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Base64  bool              `json:"isBase64Encoded"`
}

// ask sends a request and returns the answer with its body decoded.
func ask(t testing.TB, f *emulator.Function, e event) answer {
	t.Helper()
	s, err := f.InvokeStream(t.Context(), e.payload(t))
	require.NoError(t, err)
	defer s.Body.Close()
	b, err := io.ReadAll(s.Body)
	require.NoError(t, err)
	if s.Prelude != nil {
		return answer{Status: s.Prelude.StatusCode, Headers: s.Prelude.Headers, Body: string(b)}
	}
	var a answer
	require.NoError(t, json.Unmarshal(b, &a), string(b))
	if a.Base64 {
		plain, err := base64.StdEncoding.DecodeString(a.Body)
		require.NoError(t, err)
		a.Body = string(plain)
	}
	return a
}

// series returns the samples of a matrix or vector of the query API by instance label.
func series(t testing.TB, a answer) map[string]string {
	t.Helper()
	require.Equal(t, 200, a.Status, a.Body)
	var v struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  any
				Values any
			}
		}
	}
	d := json.NewDecoder(strings.NewReader(a.Body))
	d.UseNumber() // keeps the text of times
	require.NoError(t, d.Decode(&v), a.Body)
	got := map[string]string{}
	for _, r := range v.Data.Result {
		if got[r.Metric["instance"]] = fmt.Sprint(r.Value); r.Value == nil {
			got[r.Metric["instance"]] = fmt.Sprint(r.Values)
		}
	}
	return got
}
