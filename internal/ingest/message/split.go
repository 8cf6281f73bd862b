package message

import (
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/store/queue"
)

// BulkyError reports a batch that cannot be split into the messages that the queue allows.
type BulkyError struct{ msg string }

func (e *BulkyError) Error() string { return e.msg }

// encoder packs messages, at level 1: higher ones save a few hundredths of the bytes and no chunk
// that SQS would charge (docs/decisions/009-ingest-modes.md).
var encoder = sync.OnceValue(func() *zstd.Encoder {
	// The options are constants that the package takes.
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	return e
})

// splitter makes messages of one batch.
type splitter struct {
	batch     *remotewrite.Batch
	tenant    string
	received  time.Time
	maxBytes  int
	maxNumber int

	packer *packer
	out    []queue.Message
}

// Split packs a batch of a tenant, which was received at a time, into messages of at most maxBytes
// each: one message if it fits, else several, but no more than maxNumber, or a *BulkyError.
func Split(b *remotewrite.Batch, tenant string, received time.Time, maxBytes, maxNumber int) ([]queue.Message, error) {
	s := splitter{batch: b, tenant: tenant, received: received, maxBytes: maxBytes, maxNumber: maxNumber, packer: packers.Get().(*packer)}
	defer s.packer.release()
	size, err := s.pack(b)
	if err != nil {
		return nil, err
	}
	if s.fits(size) {
		err := s.emit(b)
		return s.out, err
	}
	// A part of average density is made a little smaller than the limit.
	n := b.Len()
	parts := max(size*21/20/maxBytes, len(s.packer.out)*21/20/maxColumns) + 1
	for i, from := 0, 0; i < parts; i++ {
		to := n
		if i < parts-1 {
			to = b.Boundary(from, n, from+(n-from)/(parts-i))
		}
		if err := s.part(from, to); err != nil {
			return nil, err
		}
		from = to
	}
	return s.out, nil
}

// pack packs a batch and returns the length (bytes) of its message.
func (s *splitter) pack(b *remotewrite.Batch) (size int, err error) {
	columns, err := s.packer.pack(b)
	if err != nil {
		return 0, err
	}
	s.packer.frame = encoder().EncodeAll(columns, s.packer.frame[:0])
	return maxHead + base64.StdEncoding.EncodedLen(len(s.packer.frame)), nil
}

func (s *splitter) fits(size int) bool {
	return size <= s.maxBytes && len(s.packer.out) <= maxColumns
}

// part makes a message of the items [from, to), or calls itself with half of them until they fit.
func (s *splitter) part(from, to int) error {
	if from == to {
		return nil
	}
	b := s.batch.Part(from, to)
	size, err := s.pack(&b)
	switch {
	case err != nil:
		return err
	case s.fits(size):
		return s.emit(&b)
	case to-from == 1:
		return &BulkyError{fmt.Sprintf("one sample with its labels takes %d bytes on the queue, the limit of a message is %d (max-message-bytes of the queue)", size, s.maxBytes)}
	}
	mid := s.batch.Boundary(from, to, (from+to)/2)
	if err := s.part(from, mid); err != nil {
		return err
	}
	return s.part(mid, to)
}

// emit makes a message of what was packed last.
func (s *splitter) emit(b *remotewrite.Batch) error {
	if len(s.out) == s.maxNumber {
		return &BulkyError{fmt.Sprintf("the request takes more than %d messages on the queue (max-messages): send fewer samples in a request", s.maxNumber)}
	}
	m := &Message{Tenant: s.tenant, Received: s.received, Holds: remotewrite.TallyOf(b), Bytes: len(s.packer.out)}
	s.out = append(s.out, queue.Message{Body: m.encode(s.packer.frame)})
	return nil
}
