package ingest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/promlake/promlake/internal/tenant"
)

// envelope is a message on the queue: what was accepted of a remote_write request of one tenant, or
// a part of that. It is text, one line that says what it is and then the samples in columns
// (packer), zstd and base64 (schemas/message.md):
//
//	promlake-write/1 tenant=team-a received=1700000000000 floats=2000 histograms=0 exemplars=0 bytes=41377
//	KLUv/aB7rgUA…
//
// Version 2 is what a message becomes that was moved back from the dead letters. It says when the
// queue got it first:
//
//	promlake-write/2 tenant=team-a received=1700000000000 sent=1700000000004 floats=2000 …
type envelope struct {
	tenant   string
	received time.Time // when the request came, in ms: timestamps in the future are judged by it
	sent     time.Time // when the queue got the message first, in ms; zero in version 1
	holds    tally     // what the message holds
	bytes    int       // of the columns
	data     string    // base64 of their zstd frame; of a parsed envelope only
}

// maxPacked is the most that the columns of a message may take, in bytes. It bounds the memory of reading one, whatever its frame claims.
const maxPacked = 8 << 20

// messageFormat begins every message, redrivenFormat one that was moved back.
const (
	messageFormat  = "promlake-write/1"
	redrivenFormat = "promlake-write/2"
)

// errUnreadable reports a message of the queue that cannot be read, now or later.
var errUnreadable = errors.New("unreadable message")

// zstdEncoder packs messages, at level 1: higher ones save a few hundredths of the bytes and no chunk that SQS would charge (docs/decisions/009-ingest-modes.md).
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	// The options are constants that the package takes.
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	return e
})

// zstdDecoder unpacks messages, into no more memory than it is given.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, _ := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true))
	return d
})

// head is the message's first line.
func (e *envelope) head() string {
	return fmt.Sprintf("%s tenant=%s received=%d floats=%d histograms=%d exemplars=%d bytes=%d\n", messageFormat, e.tenant,
		e.received.UnixMilli(), e.holds.floats, e.holds.hists, e.holds.exemplars, e.bytes)
}

// maxHead is the length of the longest first line, in bytes.
const maxHead = 384

// seal returns the message with a zstd frame.
func (e *envelope) seal(frame []byte) string {
	head := e.head()
	b := make([]byte, 0, len(head)+base64.StdEncoding.EncodedLen(len(frame)))
	return text(base64.StdEncoding.AppendEncode(append(b, head...), frame))
}

// sealedLen is the length of the longest message with a zstd frame of so many bytes.
func sealedLen(frame int) int { return maxHead + base64.StdEncoding.EncodedLen(frame) }

// parseEnvelope reads a message. It does not look at the data.
func parseEnvelope(body string) (*envelope, error) {
	head, data, ok := strings.Cut(body, "\n")
	format, head, _ := strings.Cut(head, " ")
	if !ok || format != messageFormat && format != redrivenFormat || strings.ContainsAny(data, "\r\n") {
		return nil, fmt.Errorf("%w: it is not %s or %s, a line and a line", errUnreadable, messageFormat, redrivenFormat)
	}
	fields := strings.Split(head, " ")
	var sent time.Time
	if format == redrivenFormat {
		var err error
		if fields, sent, err = cutSent(fields); err != nil {
			return nil, err
		}
	}
	names := [...]string{"tenant", "received", "floats", "histograms", "exemplars", "bytes"}
	if len(fields) != len(names) {
		return nil, fmt.Errorf("%w: its first line has %d fields instead of %d", errUnreadable, len(fields), len(names))
	}
	var text [len(names)]string
	var number [len(names)]int64
	for i, name := range names {
		if text[i], ok = strings.CutPrefix(fields[i], name+"="); !ok {
			return nil, fmt.Errorf("%w: field %s instead of %s in its first line", errUnreadable, shown(fields[i]), name)
		}
		if i == 0 {
			continue
		}
		n, err := strconv.ParseInt(text[i], 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text[i] || n < 0 && name != "received" {
			return nil, fmt.Errorf("%w: %s=%s in its first line", errUnreadable, name, shown(text[i]))
		}
		number[i] = n
	}
	id, err := tenant.Parse(text[0])
	if err != nil || text[0] == "" {
		return nil, fmt.Errorf("%w: tenant %s in its first line", errUnreadable, shown(text[0]))
	}
	if number[5] > maxPacked {
		return nil, fmt.Errorf("%w: bytes=%d in its first line, the limit is %d", errUnreadable, number[5], maxPacked)
	}
	return &envelope{
		tenant: id, received: time.UnixMilli(number[1]), sent: sent,
		holds: tally{int(number[2]), int(number[3]), int(number[4])}, bytes: int(number[5]), data: data,
	}, nil
}

// cutSent takes the third field, the time of sending, out of a first line.
func cutSent(fields []string) ([]string, time.Time, error) {
	const place = 2
	if len(fields) <= place {
		return nil, time.Time{}, fmt.Errorf("%w: its first line has %d fields", errUnreadable, len(fields))
	}
	text, ok := strings.CutPrefix(fields[place], "sent=")
	ms, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || ms <= 0 || strconv.FormatInt(ms, 10) != text {
		return nil, time.Time{}, fmt.Errorf("%w: field %s instead of sent in its first line", errUnreadable, shown(fields[place]))
	}
	return slices.Delete(slices.Clone(fields), place, place+1), time.UnixMilli(ms), nil
}

// Redriven returns a message as it may be sent again: it says when the queue got it first, so that
// a deletion which came after that still applies to it, and what was written after it still counts.
// sent is when the queue says that it got the message.
func Redriven(body string, sent time.Time) (string, error) {
	e, err := parseEnvelope(body)
	if err != nil {
		return "", err
	}
	if !e.sent.IsZero() {
		return body, nil
	}
	_, rest, _ := strings.Cut(body, " ") // the format
	parts := strings.SplitN(rest, " ", 3)
	return fmt.Sprintf("%s %s %s sent=%d %s", redrivenFormat, parts[0], parts[1], sent.UnixMilli(), parts[2]), nil
}

// unpack decodes the columns into plain. It sets aside no more memory than the message says.
func (e *envelope) unpack(plain *buffer) error {
	packed := buffers.Get().(*buffer)
	defer packed.release()
	n := base64.StdEncoding.DecodedLen(len(e.data))
	n, err := base64.StdEncoding.Strict().Decode(packed.sized(n), unsafe.Slice(unsafe.StringData(e.data), len(e.data)))
	if err != nil {
		return fmt.Errorf("%w: base64: %w", errUnreadable, err)
	}
	packed.b = packed.b[:n]
	out, err := zstdDecoder().DecodeAll(packed.b, plain.sized(e.bytes)[:0:e.bytes])
	if err != nil {
		return fmt.Errorf("%w: zstd: %w", errUnreadable, err)
	}
	if len(out) != e.bytes {
		return fmt.Errorf("%w: zstd: %d bytes instead of %d", errUnreadable, len(out), e.bytes)
	}
	plain.b = out
	return nil
}
