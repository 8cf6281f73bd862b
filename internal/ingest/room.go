package ingest

import "fmt"

// What a message becomes takes more memory than its bytes, most of all where fields are empty: two bytes can say "a histogram". The
// decoder counts roughly what it sets aside and gives up on messages that no sender of samples would write.
const (
	costFloat     = 96      // a floatSample, what sorting makes of it, and its bytes in the segment
	costHistogram = 320     // a histSample, its histogram and spans, without its buckets
	costBucket    = 8       // a bucket, for each byte of a histogram's message
	costExemplar  = 96      // an exemplarSample without its labels
	costSeries    = 128     // a miss
	costRef       = 8       // a reference of a missed series, and of the one at hand
	costSymbol    = 48      // a symbol and its hash
	costMetadata  = 96      // a description without its texts
	costRow       = 8       // a series of a message of the queue
	costOffence   = 64      // the work of wording one, rather than memory
	costNew       = 128     // a label set that is new to the table, without its texts
	costColumn    = 4       // a byte of a message of the queue: its columns, label sets and dictionaries
	costRequest   = 1 << 10 // of any request

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

// firstRoom is what a message of n bytes may take before the decoder asks for more. With the
// message and its body it fits the limit.
func (s *Settings) firstRoom(n int64) int64 {
	body := max(s.MaxRequestBytes+1, bodyClasses[0])
	return max(0, min(64<<10+2*n, s.MaxInflightBytes-body-n))
}

// begin gives the decoder the room for a message: granted at once, and most if grow allows it.
func (d *decoder) begin(msg []byte, granted, most int64, grow func(int64) error) {
	d.message, d.most, d.grow = len(msg), most, grow
	d.granted = min(granted, most)
	d.room = d.granted
}

// beginPacked is begin for a message of the queue, whose room is limited by its length alone.
func (d *decoder) beginPacked(msg []byte, limit int64) {
	most := min(roomBase+roomPerPacked*int64(len(msg)), limit)
	d.begin(msg, most, most, nil)
}

// used is what reading the message has taken so far.
func (d *decoder) used() int64 { return d.granted - d.room }

// full returns an error once the message has used up its room and gets no more.
func (d *decoder) full() error { return d.reserve(0) }

// reserve sees to it that n bytes of the room are left. It never waits, for the caller may hold
// locks.
func (d *decoder) reserve(n int64) error {
	if d.room >= n {
		return nil
	}
	more := min(max(n-d.room, d.granted/2), d.most-d.granted)
	if d.room+more < n {
		return &errDense{d.message, d.most}
	}
	if err := d.grow(more); err != nil {
		return err
	}
	d.granted, d.room = d.granted+more, d.room+more
	return nil
}
