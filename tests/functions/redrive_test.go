package functions

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// TestRedriveOnCommand: the function that flushes moves dead letters with the send times that they
// had, says what is left, and does nothing that the command does not name.
func TestRedriveOnCommand(t *testing.T) {
	sent := time.Now().Add(-time.Hour)
	dead, writes := memqueue.New(memqueue.Settings{Now: func() time.Time { return sent }}), memqueue.New(memqueue.Settings{})
	server := sqstest.Start(t)
	env := []string{"PROMLAKE_STORE=file://" + t.TempDir(), "PROMLAKE_INGEST_QUEUE_URL=" + server.Add("write", writes)}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	start := func(more ...string) *emulator.Function {
		return lambdatest.Start(t, emulator.Settings{Path: programs["ingest-fn"], Name: "flush", Env: append(env, more...)})
	}
	sender := start("PROMLAKE_INGEST_MODE=buffered")
	for range 12 {
		require.Equal(t, 204, ask(t, sender, recorded(t, "http-api-write-v1")).Status)
	}
	for _, m := range writes.Messages() {
		require.NoError(t, dead.Send(t.Context(), queue.Message{Body: m.Body}))
		require.NoError(t, writes.Delete(t.Context(), m))
	}
	require.NoError(t, dead.Send(t.Context(), queue.Message{Body: "this is no request"}))

	flush := start("PROMLAKE_INGEST_MODE=direct", "PROMLAKE_INGEST_DEAD_LETTER_QUEUE_URL="+server.Add("dead", dead))
	type fate struct {
		Fate              string
		Messages, Samples int
	}
	type answer struct {
		Fates      []fate
		Unreadable []string
		Left       int
		Complete   bool
		Error      string
	}
	redrive := func(payload string) (a answer) {
		b, err := flush.Invoke(t.Context(), []byte(payload))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &a), string(b))
		return a
	}
	a := redrive(`{"command": "redrive", "dry_run": true, "discard_unreadable": true}`)
	require.Len(t, a.Unreadable, 1)
	require.Contains(t, a.Unreadable[0], "it is not promlake-write/1")
	samples := a.Fates[0].Samples / 12
	a.Unreadable = nil
	require.Equal(t, answer{Fates: []fate{{"readable", 12, 12 * samples}, {"unreadable, stays", 1, 0}}, Left: 13, Complete: true}, a)
	require.Empty(t, writes.Messages())

	require.Equal(t, answer{Fates: []fate{{"moved", 11, 11 * samples}}, Unreadable: []string{}, Left: 2}, redrive(`{"command": "redrive", "max": 11}`))
	a = redrive(`{"command": "redrive", "discard_unreadable": true}`)
	require.Equal(t, []fate{{"moved", 1, samples}, {"unreadable, discarded", 1, 0}}, a.Fates)
	require.True(t, a.Complete && a.Left == 0)
	require.Len(t, writes.Messages(), 12)
	for _, m := range writes.Messages() {
		require.Contains(t, m.Body, fmt.Sprintf(" sent=%d ", sent.UnixMilli()))
	}

	for payload, want := range map[string]string{
		`{"command": "redrive", "dryrun": true}`: `unknown field "dryrun"; there are dry_run, max and discard_unreadable`,
		`{"command": "redrive", "max": -1}`:      "redrive: want max of 0 or more, got -1",
		`{"command": "purge"}`:                   `command: want redrive, got "purge"`,
	} {
		_, err := flush.Invoke(t.Context(), []byte(payload))
		require.ErrorContains(t, err, want)
	}
	_, err := sender.Invoke(t.Context(), []byte(`{"command": "redrive"}`))
	require.ErrorContains(t, err, "event is not supported: command; this function supports")
}
