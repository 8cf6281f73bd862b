package lambda

import (
	"fmt"
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/format/jsontext"
)

// records decodes the records of a queue. If they are not from SQS, it returns nil and sets source
// to their source.
func records(p *jsontext.Parser, source *string) ([]Message, error) {
	var all []Message
	err := p.Array(func() error {
		var m Message
		var from string
		if err := p.Object(func(key string) error { return m.member(p, key, &from) }); err != nil {
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
func (m *Message) member(p *jsontext.Parser, key string, source *string) (err error) {
	switch key {
	case "messageId":
		m.ID, err = text(p)
	case "receiptHandle":
		m.Handle, err = text(p)
	case "body":
		m.Body, err = text(p)
	case "eventSourceARN":
		m.Queue, err = text(p)
	case "eventSource", "EventSource": // SNS spells it with a capital letter
		*source, err = text(p)
	case "attributes":
		err = p.Object(func(key string) error { return m.attribute(p, key) })
	default:
		err = p.Skip()
	}
	return err
}

// attribute decodes one of the queue's attributes of a message; all are strings.
func (m *Message) attribute(p *jsontext.Parser, key string) (err error) {
	switch key {
	case "MessageGroupId":
		m.Group, err = text(p)
	case "SentTimestamp":
		var ms int64
		ms, err = number(p)
		m.Sent = time.UnixMilli(ms)
	case "ApproximateReceiveCount":
		var n int64
		n, err = number(p)
		m.Receives = int(n)
	default:
		err = p.Skip()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// number decodes a quoted integer.
func number(p *jsontext.Parser) (int64, error) {
	digits, err := p.String()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(digits, 10, 64)
}
