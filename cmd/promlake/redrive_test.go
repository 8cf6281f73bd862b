package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// readable is a message with one sample of a tenant.
func readable(tenant string) string {
	return "promlake-write/1 tenant=" + tenant + " received=1700000000000 floats=1 histograms=0 exemplars=0 bytes=52\n" +
		"KLUv/QQAoQEAAghfX25hbWVfXwNqb2IBAgABAQFtAQR0ZXN0AQAAAAEAAYCgq/75YgAAAAAAAPA/AAAAALWVJ2o="
}

// dead is a dead-letter queue with messages, and the queue that they came from.
type dead struct {
	server   *sqstest.Server
	from, to *memqueue.Queue
	args     []string
	clock    time.Time
}

func newDead(t *testing.T, bodies ...string) *dead {
	t.Helper()
	d := &dead{server: sqstest.Start(t), clock: time.Now().Add(-time.Hour)}
	now := func() time.Time { return d.clock }
	d.from, d.to = memqueue.New(memqueue.Settings{Now: now}), memqueue.New(memqueue.Settings{Now: now})
	d.args = []string{"redrive", "--from", d.server.Add("dead", d.from), "--to", d.server.Add("queue", d.to)}
	for _, b := range bodies {
		require.NoError(t, d.from.Send(t.Context(), queue.Message{Body: b}))
	}
	return d
}

func (d *dead) run(t *testing.T, code int, more ...string) (out, problems string) {
	t.Helper()
	var o, e bytes.Buffer
	require.Equal(t, code, run(t.Context(), append(d.args, more...), flags.Streams{Out: &o, Err: &e}), "%s%s", &o, &e)
	return o.String(), e.String()
}

// visible counts the messages that others can take now.
func visible(t *testing.T, q *memqueue.Queue) int {
	t.Helper()
	n := 0
	for {
		ms, err := q.Receive(t.Context(), 10, 0, time.Minute)
		require.NoError(t, err)
		if len(ms) == 0 {
			return n
		}
		n += len(ms)
	}
}

func TestRedrive(t *testing.T) {
	d := newDead(t, readable("team-a"), "nonsense", readable("b"))
	out, _ := d.run(t, 0)
	require.Regexp(t, `(?m)^MESSAGE    TENANT                     SAMPLES  BYTES  DELIVERIES     AGE$`, out)
	require.Regexp(t, `(?m)^message-1  team-a  moved                    1   52 B           1  1h0m\d+s$`, out)
	require.Regexp(t, `(?m)^message-2  –       unreadable, stays        –      –           1  1h0m\d+s$`, out)
	require.Regexp(t, `(?m)^message-2: unreadable message: it is not promlake-write/1`, out)
	require.Regexp(t, `(?m)^moved +2 messages +2 samples$`, out)
	require.Regexp(t, `(?m)^unreadable, stays +1 messages +0 samples$`, out)
	require.Len(t, d.to.Messages(), 2)
	require.Len(t, d.from.Messages(), 1)
	require.Equal(t, 1, visible(t, d.from), "what stays can be taken at once")

	d.clock = d.clock.Add(time.Hour)
	out, _ = d.run(t, 0, "--discard-unreadable")
	require.Contains(t, out, "unreadable, discarded")
	require.Empty(t, d.from.Messages())
	out, _ = d.run(t, 0)
	require.Equal(t, "no dead letters\n", out)
}

func TestRedriveDryRun(t *testing.T) {
	d := newDead(t, readable("a"), "nonsense")
	out, _ := d.run(t, 0, "--dry-run", "--discard-unreadable")
	require.Contains(t, out, "message-1  a       readable")
	require.Contains(t, out, "unreadable, stays")
	require.Empty(t, d.to.Messages())
	require.Len(t, d.from.Messages(), 2)
	require.Equal(t, 2, visible(t, d.from))
}

func TestRedriveMax(t *testing.T) {
	var bodies []string
	for i := range 25 {
		bodies = append(bodies, readable(fmt.Sprint("t", i)))
	}
	d := newDead(t, bodies...)
	d.run(t, 0, "--max", "12")
	require.Len(t, d.to.Messages(), 12)
	require.Len(t, d.from.Messages(), 13)
	d.run(t, 0)
	require.Len(t, d.to.Messages(), 25)
	require.Empty(t, d.from.Messages())
}

// TestRedriveLosesNothing fails each step: a message is on one queue at least.
func TestRedriveLosesNothing(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fault    sqstest.Fault
		from, to int
		want     string
	}{
		{"send", sqstest.Fault{Op: "SendMessageBatch", Status: 403, Code: "AccessDenied"}, 2, 0, "not moved, stays"},
		{"send, but sent", sqstest.Fault{Op: "SendMessageBatch", Status: 403, Code: "AccessDenied", After: true}, 2, 2, "not moved, stays"},
		{"delete", sqstest.Fault{Op: "DeleteMessageBatch", Status: 403, Code: "AccessDenied"}, 2, 2, "moved, but stays too"},
		{"receive", sqstest.Fault{Op: "ReceiveMessage", Status: 403, Code: "AccessDenied"}, 2, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDead(t, readable("a"), readable("b"))
			d.server.Plan(tc.fault)
			out, problems := d.run(t, 1)
			require.Contains(t, out, tc.want)
			require.NotContains(t, out, "no dead letters")
			require.Contains(t, problems, "AccessDenied")
			require.Len(t, d.from.Messages(), tc.from)
			require.Len(t, d.to.Messages(), tc.to)
			d.clock = d.clock.Add(time.Hour)
			d.run(t, 0)
			require.Empty(t, d.from.Messages())
			require.Len(t, d.to.Messages(), tc.to+2)
		})
	}
}

func TestRedriveArguments(t *testing.T) {
	d := newDead(t)
	for want, args := range map[string][]string{
		"want --to URL, or --dry-run":         {"redrive", "--from", d.args[2]},
		"--from and --to are one queue":       {"redrive", "--from", d.args[2], "--to", d.args[2]},
		"want --max of 0 or more, got -1":     {"redrive", "--from", d.args[2], "--to", d.args[4], "--max=-1"},
		"open queue: want https://host/accou": {"redrive", "--from", "x", "--dry-run"},
	} {
		var o, e bytes.Buffer
		require.Equal(t, 1, run(t.Context(), args, flags.Streams{Out: &o, Err: &e}))
		require.Contains(t, e.String(), want)
		require.NotContains(t, strings.ToLower(e.String()), "panic")
	}
}
