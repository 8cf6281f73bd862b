package functions

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
)

// TestMessagesAcrossVersions: messages wait on queues while functions are replaced by those of
// another release. Each release consumes the messages of all releases before it, and leaves those
// of a later one on the queue: the alarms on the age of messages and on dead letters see them
// there.
func TestMessagesAcrossVersions(t *testing.T) {
	s := start(t, "PROMLAKE_INGEST_MODE=direct", "PROMLAKE_COMPACTOR_QUEUE_URL=http://127.0.0.1:1/jobs")
	pinned := func(name string) string {
		b, err := os.ReadFile("../../internal/" + name)
		require.NoError(t, err)
		return string(b)
	}
	write, job := pinned("ingest/message/testdata/promlake-write-1.txt"), pinned("compact/testdata/job-v1.json")
	redriven := pinned("ingest/message/testdata/promlake-write-2.txt")
	// A message that was sent a month ago is too old for any release.
	redriven = strings.Replace(redriven, "sent=1700000000004", fmt.Sprint("sent=", time.Now().UnixMilli()), 1)

	for _, tc := range []struct {
		name, queue, body string
		f                 *emulator.Function
		stays             bool
	}{
		{"a write of 0.1", "sqs-standard", write, s.ingest, false},
		{"a write of 0.1 that was moved back", "sqs-standard", redriven, s.ingest, false},
		{"a write of a later release", "sqs-standard", strings.Replace(write, "promlake-write/1", "promlake-write/3", 1), s.ingest, true},
		{"a job of 0.1", "sqs-fifo", job, s.compact, false},
		{"a job of a later release", "sqs-fifo", strings.Replace(job, `"version":1`, `"version":2`, 1), s.compact, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := message(t, tc.queue, tc.body)
			b, err := tc.f.Invoke(t.Context(), e.payload(t))
			require.NoError(t, err)
			var kept struct {
				BatchItemFailures []struct{ ItemIdentifier string }
			}
			require.NoError(t, json.Unmarshal(b, &kept), string(b))
			if !tc.stays {
				require.Empty(t, kept.BatchItemFailures)
				return
			}
			require.Len(t, kept.BatchItemFailures, 1)
			require.Equal(t, e["Records"].([]any)[0].(map[string]any)["messageId"], kept.BatchItemFailures[0].ItemIdentifier)
		})
	}
	query := asking(t, "http-api-query", "/api/v1/query", "query=m&time=1700000000")
	query["headers"].(map[string]any)["x-scope-orgid"] = "anonymous"
	require.Equal(t, map[string]string{"": "[1700000000 1]"}, series(t, plain(t, ask(t, s.query, query))))
}
