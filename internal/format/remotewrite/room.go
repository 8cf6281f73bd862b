package remotewrite

import "fmt"

// The memory (bytes) that decoding sets aside for a thing, until it is in a segment. What a message
// becomes takes more memory than its bytes, most of all where fields are empty: two bytes can stand
// for a histogram.
const (
	CostFloat     = 96  // a Float, the copy that sorting makes of it, and its bytes in the segment
	CostHistogram = 320 // a Hist, its histogram and spans, without its buckets
	CostExemplar  = 96  // an Exemplar without its labels
	CostSymbol    = 48  // a text and its hash
	CostRef       = 8   // a reference to a text
	costBucket    = 8   // a bucket, for each byte of a histogram's message
	costSeries    = 128 // a miss
	costGiven     = 24  // what a miss has from a sender of this process
	costMetadata  = 96  // metadata without its texts
	costOffence   = 64  // wording an error: work rather than memory
	costNew       = 128 // a label set that is new to the table, without its texts
)

// MostRoom is the memory (bytes) that decoding a message of n bytes may take. Messages that need
// more are denser than senders of samples write them.
func MostRoom(n int64) int64 { return roomBase + roomPerByte*n }

const (
	roomBase    = 256 << 10
	roomPerByte = 16
)

// Room is the memory (bytes) that decoding one message may take, and what it has taken of that.
type Room struct {
	message int   // bytes of the message
	most    int64 // upper bound of granted
	granted int64
	left    int64             // of granted; negative: Reserve decides whether decoding goes on
	grow    func(int64) error // grants more, or returns why not; it does not wait
	refused bool              // Reserve returned an error
}

// NewRoom returns the room of a message of message bytes: granted bytes at once, and up to most as
// far as grow allows. grow may be nil if granted is most.
func NewRoom(message int, granted, most int64, grow func(int64) error) Room {
	granted = min(granted, most)
	return Room{message: message, most: most, granted: granted, left: granted, grow: grow}
}

// Take takes n bytes. It reports whether they were left; if not, Reserve must follow.
func (r *Room) Take(n int64) bool {
	r.left -= n
	return r.left >= 0
}

// Reserve makes n bytes available, or returns a *DenseError or what grow returned.
func (r *Room) Reserve(n int64) error {
	if r.left >= n {
		return nil
	}
	return r.extend(n)
}

func (r *Room) extend(n int64) error {
	more := min(max(n-r.left, r.granted/2), r.most-r.granted)
	err := error(&DenseError{r.message, r.most})
	if r.left+more >= n {
		err = r.grow(more)
	}
	if err != nil {
		r.refused = true
		return err
	}
	r.granted, r.left = r.granted+more, r.left+more
	return nil
}

// used is what decoding has taken so far.
func (r *Room) used() int64 { return r.granted - r.left }

// DenseError reports a message that would take too much memory to decode.
type DenseError struct {
	Message int   // bytes of the message
	Room    int64 // bytes that it may take
}

func (e *DenseError) Error() string {
	return fmt.Sprintf("message of %d bytes would take more than %d bytes of memory (max-inflight-bytes; with remote-write also %d for each byte): send fewer series in a request",
		e.Message, e.Room, roomPerByte)
}
