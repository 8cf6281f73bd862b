// Package message is the format of the write queue: the accepted part of a remote_write request, or
// a part of it, as text (schemas/message.md). A message is a line that describes it, then the
// samples in columns, zstd and base64:
//
//	promlake-write/1 tenant=team-a received=1700000000000 floats=2000 histograms=0 exemplars=0 bytes=41377
//	KLUv/aB7rgUA…
//
// Version 2 is a message that was moved back from the dead-letter queue. It also holds the time
// when the write queue first accepted it:
//
//	promlake-write/2 tenant=team-a received=1700000000000 sent=1700000000004 floats=2000 …
package message

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/remotewrite"
)

// Message is a message whose first line was read.
type Message struct {
	Tenant   string
	Received time.Time         // when the request came, in ms: timestamps in the future are judged by it
	Sent     time.Time         // when the queue got the message first, in ms; zero in version 1
	Holds    remotewrite.Tally // what the message holds
	Bytes    int               // of the columns
	data     string            // base64 of their zstd frame
}

// maxColumns is the most that the columns of a message may take, in bytes. It bounds the memory of
// reading one, whatever its frame claims.
const maxColumns = 8 << 20

// The first words of messages.
const (
	format         = "promlake-write/1"
	redrivenFormat = "promlake-write/2"
)

// ErrUnreadable reports a message that no consumer can read, now or later.
var ErrUnreadable = errors.New("unreadable message")

// head is the message's first line.
func (m *Message) head() string {
	first, sent := format, ""
	if !m.Sent.IsZero() {
		first, sent = redrivenFormat, fmt.Sprintf(" sent=%d", m.Sent.UnixMilli())
	}
	return fmt.Sprintf("%s tenant=%s received=%d%s floats=%d histograms=%d exemplars=%d bytes=%d\n", first, m.Tenant,
		m.Received.UnixMilli(), sent, m.Holds.Floats, m.Holds.Hists, m.Holds.Exemplars, m.Bytes)
}

// maxHead is the length of the longest first line of version 1, in bytes.
const maxHead = 384

// encode returns the text of the message with a zstd frame.
func (m *Message) encode(frame []byte) string {
	head := m.head()
	b := make([]byte, 0, len(head)+base64.StdEncoding.EncodedLen(len(frame)))
	return remotewrite.View(base64.StdEncoding.AppendEncode(append(b, head...), frame))
}

// Parse reads the first line of a message, or returns an ErrUnreadable.
func Parse(body string) (*Message, error) {
	head, data, ok := strings.Cut(body, "\n")
	first, head, _ := strings.Cut(head, " ")
	if !ok || first != format && first != redrivenFormat || strings.ContainsAny(data, "\r\n") {
		return nil, fmt.Errorf("%w: it is not %s or %s, a line and a line", ErrUnreadable, format, redrivenFormat)
	}
	fields := strings.Split(head, " ")
	var sent time.Time
	if first == redrivenFormat {
		var err error
		if fields, sent, err = cutSent(fields); err != nil {
			return nil, err
		}
	}
	names := [...]string{"tenant", "received", "floats", "histograms", "exemplars", "bytes"}
	if len(fields) != len(names) {
		return nil, fmt.Errorf("%w: its first line has %d fields instead of %d", ErrUnreadable, len(fields), len(names))
	}
	var text [len(names)]string
	var number [len(names)]int64
	for i, name := range names {
		if text[i], ok = strings.CutPrefix(fields[i], name+"="); !ok {
			return nil, fmt.Errorf("%w: field %s instead of %s in its first line", ErrUnreadable, remotewrite.Quote(fields[i]), name)
		}
		if i == 0 {
			continue
		}
		n, err := strconv.ParseInt(text[i], 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text[i] || n < 0 && name != "received" {
			return nil, fmt.Errorf("%w: %s=%s in its first line", ErrUnreadable, name, remotewrite.Quote(text[i]))
		}
		number[i] = n
	}
	id, err := tenant.Parse(text[0])
	if err != nil || text[0] == "" {
		return nil, fmt.Errorf("%w: tenant %s in its first line", ErrUnreadable, remotewrite.Quote(text[0]))
	}
	if number[5] > maxColumns {
		return nil, fmt.Errorf("%w: bytes=%d in its first line, the limit is %d", ErrUnreadable, number[5], maxColumns)
	}
	return &Message{
		Tenant: id, Received: time.UnixMilli(number[1]), Sent: sent,
		Holds: remotewrite.Tally{Floats: int(number[2]), Hists: int(number[3]), Exemplars: int(number[4])},
		Bytes: int(number[5]), data: data,
	}, nil
}

// cutSent takes the third field, the time of sending, out of a first line.
func cutSent(fields []string) ([]string, time.Time, error) {
	const place = 2
	if len(fields) <= place {
		return nil, time.Time{}, fmt.Errorf("%w: its first line has %d fields", ErrUnreadable, len(fields))
	}
	text, ok := strings.CutPrefix(fields[place], "sent=")
	ms, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || ms <= 0 || strconv.FormatInt(ms, 10) != text {
		return nil, time.Time{}, fmt.Errorf("%w: field %s instead of sent in its first line", ErrUnreadable, remotewrite.Quote(fields[place]))
	}
	return slices.Delete(slices.Clone(fields), place, place+1), time.UnixMilli(ms), nil
}

// Redriven returns a message in the form in which it may be sent again. It holds the time at which
// the queue first got it, so that a later deletion still applies to it, and samples written later
// still replace it. sent is the queue's send time of body.
func Redriven(body string, sent time.Time) (string, error) {
	m, err := Parse(body)
	if err != nil {
		return "", err
	}
	if m.Sent.IsZero() {
		m.Sent = sent
	}
	return m.head() + m.data, nil
}

// maxDescribed is the memory (bytes) that Describe may take.
const maxDescribed = 256 << 20

// Describe reads a whole message as a consumer does, but without limits, which belong to the
// consumer. Its error wraps ErrUnreadable and states why no consumer can read the message.
func Describe(body string) (*Message, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	limits := remotewrite.DefaultLimits()
	b, err := m.Decode(remotewrite.NewGeneration(0), &limits, maxDescribed)
	if errors.Is(err, ErrUnreadable) {
		return nil, err
	}
	if err == nil {
		b.Release()
	}
	return m, nil
}
