package lambda

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// records decodes the records of a queue. If they are not from SQS, it returns nil and sets source
// to their source.
func records(s *scanner, source *string) ([]Message, error) {
	var all []Message
	err := s.array(func() error {
		var m Message
		var from string
		if err := s.object(func(key string) error { return m.member(s, key, &from) }); err != nil {
			return err
		}
		if from != sourceSQS && *source == "" {
			*source = strconv.Quote(from)
		}
		all = append(all, m)
		return nil
	})
	if err != nil || *source != "" {
		return nil, err
	}
	if all == nil {
		*source = "nothing"
	}
	return all, nil
}

// member decodes one member of a record.
func (m *Message) member(s *scanner, key string, source *string) (err error) {
	switch key {
	case "messageId":
		m.ID, err = s.optional()
	case "body":
		m.Body, err = s.optional()
	case "eventSourceARN":
		m.Queue, err = s.optional()
	case "eventSource", "EventSource": // SNS spells it with a capital letter
		*source, err = s.optional()
	case "attributes":
		err = s.object(func(key string) error { return m.attribute(s, key) })
	default:
		err = s.skip()
	}
	return err
}

// attribute decodes one of the queue's attributes of a message; all are strings.
func (m *Message) attribute(s *scanner, key string) (err error) {
	switch key {
	case "MessageGroupId":
		m.Group, err = s.optional()
	case "SentTimestamp":
		var ms int64
		ms, err = number(s)
		m.Sent = time.UnixMilli(ms)
	case "ApproximateReceiveCount":
		var n int64
		n, err = number(s)
		m.Receives = int(n)
	default:
		err = s.skip()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// number decodes a quoted integer.
func number(s *scanner) (int64, error) {
	text, err := s.str()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// batchAnswer is the answer to a batch of an event source mapping with ReportBatchItemFailures.
type batchAnswer struct {
	// never null, which would mean that all messages failed
	Failures []batchFailure `json:"batchItemFailures"`
}

type batchFailure struct {
	ID string `json:"itemIdentifier"`
}

func encodeFailures(failed []string) ([]byte, error) {
	a := batchAnswer{Failures: make([]batchFailure, 0, len(failed))}
	for _, id := range failed {
		a.Failures = append(a.Failures, batchFailure{id})
	}
	return json.Marshal(a)
}
