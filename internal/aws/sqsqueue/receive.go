package sqsqueue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/store/queue"
)

// Receive implements queue.Receiver. SQS waits for at most 20 s and counts in whole seconds.
func (q *Queue) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Received, error) {
	client, err := q.connect()
	if err != nil {
		return nil, fmt.Errorf("receive from queue %s: %w", q.name, err)
	}
	out, err := client.ReceiveMessage(withPayload(ctx, opReceive, 0), &sqs.ReceiveMessageInput{
		QueueUrl:            &q.url,
		MaxNumberOfMessages: int32(min(max(limit, 1), queue.MaxBatch)),
		WaitTimeSeconds:     int32(min(wait, maxWait).Seconds()),
		VisibilityTimeout:   int32(visibility.Seconds()),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameSentTimestamp,
			types.MessageSystemAttributeNameApproximateReceiveCount,
			types.MessageSystemAttributeNameMessageGroupId,
		},
	}, func(o *sqs.Options) { o.HTTPClient = q.patient })
	if err != nil {
		return nil, fmt.Errorf("receive from queue %s: %w", q.name, err)
	}
	bytes := 0
	ms := make([]queue.Received, len(out.Messages))
	for i, m := range out.Messages {
		if ms[i], err = received(m); err != nil {
			return nil, fmt.Errorf("receive from queue %s: %w", q.name, err)
		}
		bytes += len(ms[i].Body)
	}
	q.met.chunks.WithLabelValues(q.name, opReceive).Add(float64(queue.Chunks(bytes) - 1)) // the request counted as one
	return ms, nil
}

func received(m types.Message) (queue.Received, error) {
	r := queue.Received{
		ID: aws.ToString(m.MessageId), Handle: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body),
		Group: m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
	}
	sent, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	if err != nil {
		return r, fmt.Errorf("message %s: sent timestamp: %w", r.ID, err)
	}
	r.Sent = time.UnixMilli(sent)
	if r.Receives, err = strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err != nil {
		return r, fmt.Errorf("message %s: receive count: %w", r.ID, err)
	}
	return r, nil
}

// Delete implements queue.Receiver.
func (q *Queue) Delete(ctx context.Context, ms ...queue.Received) error {
	return q.settle(ctx, ms, "delete from", func(client *sqs.Client, part []queue.Received) ([]types.BatchResultErrorEntry, error) {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &q.url}
		for i, m := range part {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.Handle)})
		}
		out, err := client.DeleteMessageBatch(withPayload(ctx, opDelete, 0), in)
		if err != nil {
			return nil, err
		}
		return out.Failed, nil
	})
}

// Release implements queue.Receiver. A message that is no longer hidden needs no release.
func (q *Queue) Release(ctx context.Context, wait time.Duration, ms ...queue.Received) error {
	return q.settle(ctx, ms, "release messages of", func(client *sqs.Client, part []queue.Received) ([]types.BatchResultErrorEntry, error) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url}
		for i, m := range part {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.Handle), VisibilityTimeout: int32(wait.Seconds()),
			})
		}
		out, err := client.ChangeMessageVisibilityBatch(withPayload(ctx, opRelease, 0), in)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(out.Failed, notHidden), nil
	})
}

// notHidden reports whether an entry failed because its message is visible already.
func notHidden(e types.BatchResultErrorEntry) bool {
	switch aws.ToString(e.Code) {
	case "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", "ReceiptHandleIsInvalid", "InvalidParameterValue":
		return true
	}
	return false
}

// Count returns about how many messages the queue has, hidden and delayed ones included.
func (q *Queue) Count(ctx context.Context) (n int, err error) {
	client, err := q.connect()
	if err != nil {
		return 0, fmt.Errorf("count messages of queue %s: %w", q.name, err)
	}
	out, err := client.GetQueueAttributes(withPayload(ctx, opCount, 0), &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url,
		AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
		},
	})
	if err != nil {
		return 0, fmt.Errorf("count messages of queue %s: %w", q.name, err)
	}
	for name, value := range out.Attributes {
		some, err := strconv.Atoi(value)
		if err != nil {
			return 0, fmt.Errorf("count messages of queue %s: %s: %w", q.name, name, err)
		}
		n += some
	}
	return n, nil
}

// attempt requests the end of deliveries and returns the entries that failed.
type attempt func(*sqs.Client, []queue.Received) ([]types.BatchResultErrorEntry, error)

// settle ends deliveries in runs that one request can carry.
func (q *Queue) settle(ctx context.Context, ms []queue.Received, what string, try attempt) error {
	client, err := q.connect()
	if err != nil {
		return fmt.Errorf("%s queue %s: %w", what, q.name, err)
	}
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(maxParallelSends)
	for part := range slices.Chunk(ms, queue.MaxBatch) {
		again := func(ms []queue.Received) ([]types.BatchResultErrorEntry, error) { return try(client, ms) }
		eg.Go(func() error { return repeat(ctx, q.config, part, "failed", again) })
	}
	if err := eg.Wait(); err != nil {
		return fmt.Errorf("%s queue %s: %w", what, q.name, err)
	}
	return nil
}
