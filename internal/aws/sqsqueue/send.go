package sqsqueue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithytime "github.com/aws/smithy-go/time"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/store/queue"
)

// maxParallelSends bounds the requests of one Send, Delete or Release that are under way at the
// same time.
const maxParallelSends = 4

// Send implements queue.Sender. Several messages share requests where they fit.
func (q *Queue) Send(ctx context.Context, ms ...queue.Message) error {
	for _, m := range ms {
		if err := m.Check(); err != nil {
			return fmt.Errorf("send to queue %s: %w", q.name, err)
		}
	}
	client, err := q.connect()
	if err != nil {
		return fmt.Errorf("send to queue %s: %w", q.name, err)
	}
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(maxParallelSends)
	if strings.HasSuffix(q.name, ".fifo") {
		eg.SetLimit(1) // the messages of a group keep their order
	}
	for _, batch := range queue.Batches(ms) {
		eg.Go(func() error {
			if len(batch) == 1 {
				m := batch[0]
				_, err := client.SendMessage(withPayload(ctx, opSend, len(m.Body)), &sqs.SendMessageInput{
					QueueUrl: &q.url, MessageBody: aws.String(m.Body),
					MessageGroupId: optional(m.Group), MessageDeduplicationId: optional(m.Deduplication),
				})
				return err
			}
			return repeat(ctx, q.config, batch, "were not taken", func(ms []queue.Message) ([]types.BatchResultErrorEntry, error) {
				return q.tryBatch(ctx, client, ms)
			})
		})
	}
	if err := eg.Wait(); err != nil {
		return fmt.Errorf("send to queue %s: %w", q.name, err)
	}
	return nil
}

// optional returns nil for an empty string.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return aws.String(s)
}

// repeat calls try with messages that fit a request, and again with those that failed. how is the
// verb of the error about these.
func repeat[M any](ctx context.Context, c config, ms []M, how string, try func([]M) ([]types.BatchResultErrorEntry, error)) error {
	for n := 1; ; n++ {
		failed, err := try(ms)
		if err != nil || len(failed) == 0 {
			return err
		}
		if n == c.maxAttempts || slices.ContainsFunc(failed, final) {
			return fmt.Errorf("%d of %d messages %s, the first because of %s: %s",
				len(failed), len(ms), how, aws.ToString(failed[0].Code), aws.ToString(failed[0].Message))
		}
		if ms, err = pick(ms, failed); err != nil {
			return err
		}
		if err := smithytime.SleepWithContext(ctx, c.delay(n)); err != nil {
			return err
		}
	}
}

// final reports whether it would be useless to send the message again.
func final(e types.BatchResultErrorEntry) bool {
	return e.SenderFault && !strings.Contains(aws.ToString(e.Code), "Throttl")
}

// pick returns the messages that entries of a batch's answer name, in the order of ms.
func pick[M any](ms []M, entries []types.BatchResultErrorEntry) ([]M, error) {
	named := make([]bool, len(ms))
	for _, e := range entries {
		i, err := strconv.Atoi(aws.ToString(e.Id))
		if err != nil || i < 0 || i >= len(ms) {
			return nil, fmt.Errorf("the queue's answer names message %q, which was not sent", aws.ToString(e.Id))
		}
		named[i] = true
	}
	var out []M
	for i, m := range ms {
		if named[i] {
			out = append(out, m)
		}
	}
	return out, nil
}

// tryBatch sends a request and returns its refused messages.
func (q *Queue) tryBatch(ctx context.Context, client *sqs.Client, ms []queue.Message) ([]types.BatchResultErrorEntry, error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: make([]types.SendMessageBatchRequestEntry, len(ms))}
	bytes := 0
	for i, m := range ms {
		bytes += len(m.Body)
		in.Entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(m.Body),
			MessageGroupId: optional(m.Group), MessageDeduplicationId: optional(m.Deduplication),
		}
	}
	out, err := client.SendMessageBatch(withPayload(ctx, opSend, bytes), in)
	if err != nil {
		return nil, err
	}
	if n := len(out.Successful) + len(out.Failed); n != len(ms) {
		return nil, fmt.Errorf("the queue answered for %d of %d messages", n, len(ms))
	}
	return out.Failed, nil
}
