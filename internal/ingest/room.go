package ingest

import "fmt"

// What a message becomes takes more memory than its bytes, most of all where fields are empty: two bytes can say "a histogram". The
// decoder counts roughly what it sets aside and gives up on messages that no sender of samples would write.
const (
	costFloat     = 64  // a floatSample, and what sorting makes of it
	costHistogram = 320 // a histSample, its histogram and spans, without its buckets
	costBucket    = 8   // a bucket, for each byte of a histogram's message
	costExemplar  = 96  // an exemplarSample
	costSeries    = 128 // a miss
	costRef       = 8   // a reference of a missed series, and of the one at hand
	costSymbol    = 48  // a symbol and its hash
	costMetadata  = 96  // a description without its texts
	costRow       = 8   // a series of a message of the queue
	costOffence   = 64  // the work of wording one, rather than memory

	roomBase    = 256 << 10 // of any message
	roomPerByte = 16        // of a message's byte
	// roomPerPacked is roomPerByte of what a message of the queue carries, which is as dense as it can be: nine bytes are a sample.
	roomPerPacked = 64
)

// errDense reports a message that would take too much memory to read; the answer is 413.
type errDense struct {
	message int   // bytes
	room    int64 // bytes
}

func (e *errDense) Error() string {
	return fmt.Sprintf("remote-write message of %d bytes would take more than %d bytes of memory (max-inflight-bytes, and %d for each byte): send fewer series in a request",
		e.message, e.room, roomPerByte)
}

// roomFor returns the memory in bytes that reading a message may take.
func (d *decoder) roomFor(msg []byte) int64 {
	return min(roomBase+roomPerByte*int64(len(msg)), d.maxRoom)
}

// full returns an error once the message has used up its room.
func (d *decoder) full() error {
	if d.room >= 0 {
		return nil
	}
	return &errDense{d.message, d.granted}
}
