package listen

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// batch is lines that are appended together.
type batch struct {
	lines []byte
	came  time.Time // of the first line
}

// count is the number of lines.
func (b *batch) count() int { return bytes.Count(b.lines, []byte{'\n'}) }

// queue holds batches up to a number of bytes, those that are being appended included. It is safe
// for concurrent use.
type queue struct {
	limit int64

	mu      sync.Mutex
	changed *sync.Cond // the queue has more or less, or is closed
	bytes   int64
	full    []batch  // that no line is added to any more
	last    batch    // that lines are added to
	spare   [][]byte // memory of batches that are done, for others
	closed  bool
}

// keepSpare is how many batches' memory is kept for others: those between next and done, and the
// last one.
const keepSpare = 2

func newQueue(limit int64) *queue {
	q := &queue{limit: limit}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// add adds complete lines. With wait it waits until there is room. It reports whether the lines
// were added; they are not if the queue is closed, or full without wait.
func (q *queue) add(lines []byte, came time.Time, wait bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := int64(len(lines))
	for !q.closed && wait && q.bytes > 0 && q.bytes+n > q.limit {
		q.changed.Wait()
	}
	if q.closed || q.bytes > 0 && q.bytes+n > q.limit {
		return false
	}
	if len(q.last.lines) == 0 {
		q.last.came = came
		if n := len(q.spare); n > 0 {
			q.last.lines, q.spare = q.spare[n-1], q.spare[:n-1]
		}
	}
	q.last.lines = append(grow(q.last.lines, len(lines)), lines...)
	q.bytes += n
	if len(q.last.lines) >= batchBytes {
		q.full, q.last = append(q.full, q.last), batch{}
	}
	q.changed.Broadcast()
	return true
}

// grow makes room for n more bytes, and for no more than a batch may get.
func grow(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	return append(make([]byte, 0, max(need, min(2*need, batchBytes+maxDatagram))), b...)
}

// cut makes the last batch ready, so that it does not wait for more lines.
func (q *queue) cut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.last.lines) > 0 {
		q.full, q.last = append(q.full, q.last), batch{}
		q.changed.Broadcast()
	}
}

// next waits for a batch that is ready. ok is false if the queue is closed and has none. The caller
// calls done for the batch.
func (q *queue) next() (b batch, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.full) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.full) == 0 {
		return batch{}, false
	}
	b = q.full[0]
	q.full = slices.Delete(q.full, 0, 1)
	return b, true
}

// done gives back the room of a batch, whose lines nobody reads any more.
func (q *queue) done(b batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= int64(len(b.lines))
	if len(q.spare) < keepSpare {
		q.spare = append(q.spare, b.lines[:0])
	}
	q.changed.Broadcast()
}

// close makes everything ready and refuses further lines.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.last.lines) > 0 {
		q.full, q.last = append(q.full, q.last), batch{}
	}
	q.closed = true
	q.changed.Broadcast()
}

// size is the bytes that wait or are being appended.
func (q *queue) size() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}
