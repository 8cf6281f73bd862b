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
	full    []batch // that no line is added to any more
	last    batch   // that lines are added to
	closed  bool
}

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
	}
	q.last.lines = append(q.last.lines, lines...)
	q.bytes += n
	if len(q.last.lines) >= batchBytes {
		q.end()
	}
	q.changed.Broadcast()
	return true
}

// end makes the last batch ready. The caller holds q.mu.
func (q *queue) end() {
	if len(q.last.lines) > 0 {
		q.full, q.last = append(q.full, q.last), batch{}
	}
}

// cut makes the last batch ready, so that it does not wait for more lines.
func (q *queue) cut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end()
	q.changed.Broadcast()
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
	q.changed.Broadcast()
}

// close makes everything ready and refuses further lines.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end()
	q.closed = true
	q.changed.Broadcast()
}

// size is the bytes that wait or are being appended.
func (q *queue) size() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}
