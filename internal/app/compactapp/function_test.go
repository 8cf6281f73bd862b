package compactapp_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// function is what a function does with events.
type function interface {
	process.Stage
	process.Consumer
	process.Scheduled
}

func build(t *testing.T, p process.Parts, w compactapp.Workers) function {
	t.Helper()
	stage, err := compactapp.OnRequest(compactapp.DefaultSettings(), w)(t.Context(), p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close()) })
	return stage.(function)
}

// TestFunction: one function plans and sends, another one takes the message and does the job.
func TestFunction(t *testing.T) {
	server, jobs := sqstest.Start(t), memqueue.New(memqueue.Settings{})
	t.Setenv("AWS_REGION", "us-east-1")
	p, _ := parts(t)
	planner := build(t, p, compactapp.Workers{QueueURL: server.Add("jobs.fifo", jobs)})
	seen, _ := server.Seen()
	require.Empty(t, seen, "nothing is asked before it is needed")
	require.NoError(t, planner.Tick(t.Context(), time.Now()))
	require.NoError(t, planner.Tick(t.Context(), time.Now()))
	require.Empty(t, manifest(t, p).Blocks)

	messages := jobs.Messages()
	require.Len(t, messages, 1, "the second tick adds nothing")
	require.Regexp(t, `^a/\d{8}T0000Z$`, messages[0].Group)
	other, _ := parts(t)
	other.Store = p.Store
	worker := build(t, other, compactapp.Workers{})
	batch := []lambda.Message{{ID: "1", Body: messages[0].Body}, {ID: "2", Body: messages[0].Body}}
	failed, err := worker.Consume(t.Context(), batch)
	require.NoError(t, err)
	require.Empty(t, failed, "the copy has nothing to do")
	require.Len(t, manifest(t, p).Blocks, 1)
}

func TestTickWithoutQueue(t *testing.T) {
	p, _ := parts(t)
	require.NoError(t, build(t, p, compactapp.Workers{}).Tick(t.Context(), time.Now()))
	require.Len(t, manifest(t, p).Blocks, 1)
}

// TestConsumeGivesBack what it cannot do: the first failed message, and all that follow it.
func TestConsumeGivesBack(t *testing.T) {
	p, _ := parts(t)
	worker := build(t, p, compactapp.Workers{})
	var batch []lambda.Message
	for i := range 3 {
		batch = append(batch, lambda.Message{ID: fmt.Sprint(i), Body: `{"version":9}`})
	}
	failed, err := worker.Consume(t.Context(), batch)
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1", "2"}, failed)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failed, err = worker.Consume(ended, batch[:1])
	require.NoError(t, err)
	require.Equal(t, []string{"0"}, failed)
	failed, err = worker.Consume(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, failed)
}

func TestBadQueue(t *testing.T) {
	p, _ := parts(t)
	_, err := compactapp.OnRequest(compactapp.DefaultSettings(), compactapp.Workers{QueueURL: "jobs"})(t.Context(), p)
	require.ErrorContains(t, err, "start compaction: open queue: want https://host/account/name")
}

// TestDrainEndsTicks: a stage that drains asks nothing of the store any more.
func TestDrainEndsTicks(t *testing.T) {
	p, _ := parts(t)
	asked := 0
	p.Store = memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault { asked++; return memstore.Fault{} }})
	stage := build(t, p, compactapp.Workers{})
	require.NoError(t, stage.Drain(t.Context()))
	require.ErrorIs(t, stage.Tick(t.Context(), time.Now()), context.Canceled)
	require.Zero(t, asked)
}

// TestDefaultsInFunctions: what a function was given is what the defaults are derived from.
func TestDefaultsInFunctions(t *testing.T) {
	ordinary := compactapp.DefaultSettings()
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1536")
	s := compactapp.DefaultSettings()
	require.Equal(t, int64(512<<20), s.MemoryBytes)
	require.Equal(t, "/tmp", s.TempDir)
	require.Equal(t, 1024, s.MaxSegments)
	s.MemoryBytes, s.TempDir, s.MaxSegments = ordinary.MemoryBytes, ordinary.TempDir, ordinary.MaxSegments
	require.Equal(t, ordinary, s, "all else is the same")
}
