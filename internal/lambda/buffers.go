package lambda

import "sync"

// buffers keep the memory of answers from one invocation to the next: it is larger than all else
// that an invocation allocates, and memory that is new to the process costs more than what is
// written there.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// takeBuffer returns an empty buffer.
func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// giveBuffer takes a buffer that nobody uses any more. None is larger than a few of Lambda's
// payloads, and the collector empties the pool.
func giveBuffer(b []byte) { buffers.Put(&b) }
