package sqsqueue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// fixture is a queue, the server that holds it, and the queue's messages.
type fixture struct {
	*Queue
	server *sqstest.Server
	there  *memqueue.Queue
	reg    *prometheus.Registry
}

func open(t *testing.T, name string) fixture {
	t.Helper()
	f := fixture{server: sqstest.Start(t), there: memqueue.New(memqueue.Settings{}), reg: prometheus.NewRegistry()}
	var err error
	f.Queue, err = Open(f.server.Add(name, f.there), f.reg)
	require.NoError(t, err)
	f.config.minBackoff, f.config.maxBackoff = time.Microsecond, time.Microsecond
	return f
}

func (f fixture) bodies() []string {
	var out []string
	for _, m := range f.there.Messages() {
		out = append(out, m.Body)
	}
	return out
}

func messages(bodies ...string) []queue.Message {
	var out []queue.Message
	for _, b := range bodies {
		out = append(out, queue.Message{Body: b})
	}
	return out
}

func long(n int) string { return strings.Repeat("x", n) }

// TestSendThroughFaults: a Send that can succeed despite its faults does, and every message is on
// the queue at least once.
func TestSendThroughFaults(t *testing.T) {
	f := open(t, "q")
	one, batch := "SendMessage", "SendMessageBatch"
	for _, tc := range []struct {
		name   string
		op     string
		faults []sqstest.Fault
		twice  bool // what is sent again was there already
	}{
		{"no fault", one, nil, false},
		{"lost request", one, []sqstest.Fault{{}}, false},
		{"lost answer", one, []sqstest.Fault{{After: true}}, true},
		{"unavailable", one, []sqstest.Fault{{Status: 503, Code: "ServiceUnavailable"}, {Status: 500, Code: "InternalError"}}, false},
		{"throttled", one, []sqstest.Fault{{Status: 400, Code: "RequestThrottled"}, {Status: 403, Code: "ThrottlingException"}, {Status: 400, Code: "KmsThrottled"}}, false},
		{"no fault", batch, nil, false},
		{"lost request", batch, []sqstest.Fault{{}}, false},
		{"lost answer", batch, []sqstest.Fault{{After: true}}, true},
		{"unavailable", batch, []sqstest.Fault{{Status: 503, Code: "ServiceUnavailable"}}, false},
		{"a part is refused", batch, []sqstest.Fault{{Refuse: []int{1}, Code: "InternalError"}}, false},
		{"parts of parts are refused", batch, []sqstest.Fault{{Refuse: []int{0, 2}, Code: "InternalError"}, {Refuse: []int{1}, Code: "InternalError"}}, false},
		{"all is refused", batch, []sqstest.Fault{{Refuse: []int{0, 1, 2}, Code: "InternalError"}}, false},
		{"a part is throttled", batch, []sqstest.Fault{{Refuse: []int{2}, Code: "ThrottlingException", Status: 400}}, false},
		{"a part is refused, then the answer is lost", batch, []sqstest.Fault{{Refuse: []int{0}, Code: "InternalError"}, {Op: one, After: true}}, false},
	} {
		t.Run(tc.op+"/"+tc.name, func(t *testing.T) {
			want := []string{tc.name + "/0"}
			if tc.op == batch {
				want = append(want, tc.name+"/1", tc.name+"/2")
			}
			for i := range tc.faults {
				if tc.faults[i].Op == "" {
					tc.faults[i].Op = tc.op
				}
			}
			if n := len(tc.faults); n > 0 && tc.faults[n-1].Op == one && tc.op == batch {
				tc.faults[n-1].Op = batch // what is left of a batch is sent as a batch
			}
			f.server.Plan(tc.faults...)
			before := len(f.there.Messages())
			require.NoError(t, f.Send(t.Context(), messages(want...)...))
			_, left := f.server.Seen()
			require.Zero(t, left)
			got := f.bodies()[before:]
			for _, w := range want {
				require.Contains(t, got, w)
			}
			if !strings.Contains(tc.name, "lost answer") && !strings.Contains(tc.name, "answer is lost") {
				require.Len(t, got, len(want), "nothing is there twice")
			}
		})
	}
}

// TestSendGivesUp: the error of a Send that gives up names the queue's error.
func TestSendGivesUp(t *testing.T) {
	f := open(t, "q")
	repeat := func(n int, x sqstest.Fault) (out []sqstest.Fault) {
		for range n {
			out = append(out, x)
		}
		return out
	}
	for _, tc := range []struct {
		name     string
		bodies   []string
		faults   []sqstest.Fault
		requests int
		want     string
	}{
		{"access denied", []string{"a"}, []sqstest.Fault{{Op: "SendMessage", Status: 403, Code: "AccessDenied"}}, 1, "send to queue q: operation error SQS: SendMessage"},
		{"unavailable", []string{"a"}, repeat(5, sqstest.Fault{Op: "SendMessage", Status: 503, Code: "ServiceUnavailable"}), 5, "ServiceUnavailable"},
		{"a part is wrong", []string{"a", "b"}, []sqstest.Fault{{Op: "SendMessageBatch", Refuse: []int{1}, Code: "InvalidMessageContents", Status: 400}}, 1, "1 of 2 messages were not taken, the first because of InvalidMessageContents: injected fault"},
		{"a part never goes", []string{"a", "b"}, repeat(5, sqstest.Fault{Op: "SendMessageBatch", Refuse: []int{0}, Code: "InternalError"}), 5, "1 of 1 messages were not taken, the first because of InternalError"},
		{"too large", []string{long(queue.MaxMessageBytes + 1)}, nil, 0, "message is too large: it has 1048577 bytes, the limit of the queue is 1048576"},
		{"empty", []string{"a", ""}, nil, 0, "message without a body"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f.server.Plan(tc.faults...)
			err := f.Send(t.Context(), messages(tc.bodies...)...)
			require.ErrorContains(t, err, tc.want)
			seen, left := f.server.Seen()
			require.Zero(t, left)
			require.Len(t, seen, tc.requests)
		})
	}
}

// TestSendPacks checks which messages share a request.
func TestSendPacks(t *testing.T) {
	f := open(t, "q")
	const half = queue.MaxMessageBytes / 2
	for _, tc := range []struct {
		name   string
		bodies []string
		want   map[int]int // bytes → messages
	}{
		{"one of the largest", []string{long(2 * half)}, map[int]int{2 * half: 1}},
		{"two that just fit", []string{long(half), long(half)}, map[int]int{2 * half: 2}},
		{"two that do not fit", []string{long(half), long(half + 1)}, map[int]int{half: 1, half + 1: 1}},
		{"eleven small ones", strings.Split(strings.Repeat("x", 11), ""), map[int]int{10: 10, 1: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.NoError(t, f.Send(t.Context(), messages(tc.bodies...)...))
			seen, _ := f.server.Seen()
			got := map[int]int{}
			for _, r := range seen {
				got[r.Bytes] = r.Messages
			}
			require.Equal(t, tc.want, got)
		})
	}
	require.NoError(t, f.Send(t.Context()))
	seen, _ := f.server.Seen()
	require.Empty(t, seen)
}

func TestReceive(t *testing.T) {
	f := open(t, "q.fifo")
	now := time.Now()
	require.NoError(t, f.Send(t.Context(), queue.Message{Body: long(100_000), Group: "g", Deduplication: "d"}, queue.Message{Body: "b", Group: "g", Deduplication: "e"}))
	got, err := f.Receive(t.Context(), 1, 0, time.Minute)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, queue.Received{ID: "message-1", Handle: got[0].Handle, Body: long(100_000), Group: "g", Sent: got[0].Sent, Receives: 1}, got[0])
	require.WithinDuration(t, now, got[0].Sent, time.Minute)
	require.NoError(t, f.Release(t.Context(), time.Hour, got...))
	hidden, err := f.Receive(t.Context(), 10, 0, time.Minute)
	require.NoError(t, err)
	require.Len(t, hidden, 1, "the other one")
	require.NoError(t, f.Release(t.Context(), 0, append(got, hidden...)...))
	got, err = f.Receive(t.Context(), 10, time.Hour, time.Minute)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, 2, got[0].Receives)

	f.server.Plan(sqstest.Fault{Op: "DeleteMessageBatch", Refuse: []int{1}, Code: "InternalError"},
		sqstest.Fault{Op: "ChangeMessageVisibilityBatch", Refuse: []int{0, 1}, Code: "ReceiptHandleIsInvalid", Status: 400})
	require.NoError(t, f.Delete(t.Context(), got...))
	require.Empty(t, f.there.Messages())
	require.NoError(t, f.Release(t.Context(), 0, got...), "what is gone needs no release")
	_, left := f.server.Seen()
	require.Zero(t, left)

	f.server.Plan(sqstest.Fault{Op: "DeleteMessageBatch", Refuse: []int{0}, Code: "AccessDenied", Status: 400})
	require.ErrorContains(t, f.Delete(t.Context(), got...), "delete from queue q.fifo: 1 of 2 messages failed, the first because of AccessDenied")
	f.server.Plan(sqstest.Fault{Op: "ReceiveMessage", Status: 400, Code: "OverLimit"})
	_, err = f.Receive(t.Context(), 10, 0, time.Minute)
	require.ErrorContains(t, err, "OverLimit")
}

// TestMetrics counts every attempt and every chunk that SQS charges for.
func TestMetrics(t *testing.T) {
	f := open(t, "q")
	f.server.Plan(sqstest.Fault{Op: "SendMessage", Status: 503, Code: "ServiceUnavailable"}, sqstest.Fault{Op: "SendMessage", After: true})
	require.NoError(t, f.Send(t.Context(), messages(long(queue.ChunkBytes+1))...))
	require.NoError(t, f.Send(t.Context(), messages("a", long(queue.ChunkBytes-1))...))
	got, err := f.Receive(t.Context(), 10, 0, time.Minute)
	require.NoError(t, err)
	require.Len(t, got, 4)
	require.NoError(t, f.Delete(t.Context(), got...))
	require.NoError(t, testutil.GatherAndCompare(f.reg, strings.NewReader(`
# HELP promlake_queue_chunks_total 64 KiB chunks of payload in requests to queues, at least one a request: what SQS charges.
# TYPE promlake_queue_chunks_total counter
promlake_queue_chunks_total{op="delete",queue="q"} 1
promlake_queue_chunks_total{op="receive",queue="q"} 4
promlake_queue_chunks_total{op="send",queue="q"} 7
# HELP promlake_queue_requests_total Requests to queues, repeated ones included, by HTTP status.
# TYPE promlake_queue_requests_total counter
promlake_queue_requests_total{op="delete",queue="q",status="200"} 1
promlake_queue_requests_total{op="receive",queue="q",status="200"} 1
promlake_queue_requests_total{op="send",queue="q",status="200"} 2
promlake_queue_requests_total{op="send",queue="q",status="503"} 1
promlake_queue_requests_total{op="send",queue="q",status="error"} 1
`)))
	again, err := Open(f.server.Add("other", f.there), f.reg)
	require.NoError(t, err, "queues share a registry")
	require.Same(t, f.met.requests, again.met.requests)
}

func TestOpen(t *testing.T) {
	for _, bad := range []string{"", "q", "https://sqs.eu-central-1.amazonaws.com", "ftp://h/1/q", "https://h/"} {
		_, err := Open(bad, nil)
		require.ErrorContains(t, err, "open queue: want https://host/account/name, got ", bad)
	}
	for url, want := range map[string]config{
		"https://sqs.eu-central-1.amazonaws.com/1/q":                        {region: "eu-central-1"},
		"https://sqs-fips.us-gov-west-1.amazonaws.com/1/q":                  {region: "us-gov-west-1"},
		"https://sqs.cn-north-1.amazonaws.com.cn/1/q":                       {region: "cn-north-1"},
		"https://eu-west-1.queue.amazonaws.com/1/q":                         {region: "eu-west-1"},
		"https://vpce-1-2.sqs.us-east-1.vpce.amazonaws.com/1/q":             {region: "us-east-1", endpoint: "https://vpce-1-2.sqs.us-east-1.vpce.amazonaws.com"},
		"http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000/q":  {endpoint: "http://sqs.us-east-1.localhost.localstack.cloud:4566"},
		"http://127.0.0.1:4566/000000000000/q":                              {endpoint: "http://127.0.0.1:4566"},
		"http://localhost:4566/queue/eu-central-1/000000000000/promlake.fi": {endpoint: "http://localhost:4566"},
	} {
		q, err := Open(url, nil)
		require.NoError(t, err)
		require.Equal(t, want, config{region: q.config.region, endpoint: q.config.endpoint}, url)
	}
}

// TestEnvironment: an endpoint in the environment takes precedence over the URL's host, and a
// missing region is a clear error.
func TestEnvironment(t *testing.T) {
	f := open(t, "q")
	t.Setenv("AWS_ENDPOINT_URL_SQS", f.server.URL)
	for _, url := range []string{"https://sqs.eu-central-1.amazonaws.com/1/q", "http://sqs.invalid:1/1/q"} {
		q, err := Open(url, nil)
		require.NoError(t, err)
		require.NoError(t, q.Send(t.Context(), messages("x")...))
	}
	require.Len(t, f.there.Messages(), 2)
	_, left := f.server.Seen()
	require.Zero(t, left)
}

// TestCanceled ends a Send with its context.
func TestCanceled(t *testing.T) {
	f := open(t, "q")
	f.config.minBackoff, f.config.maxBackoff = time.Hour, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	f.server.Plan(sqstest.Fault{Op: "SendMessageBatch", Refuse: []int{0}, Code: "InternalError"})
	time.AfterFunc(50*time.Millisecond, cancel)
	require.ErrorIs(t, f.Send(ctx, messages("a", "b")...), context.Canceled)
}
