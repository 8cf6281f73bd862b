package lambda

import "sync"

// buffers reuses the memory of answers for later invocations. It is larger than everything else
// that an invocation allocates, and the first use of new memory costs more than writing the answer.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// takeBuffer returns an empty buffer.
func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// giveBuffer returns an unused buffer to the pool. Buffers are at most a few times as large as
// Lambda's payloads, and the garbage collector empties the pool.
func giveBuffer(b []byte) { buffers.Put(&b) }
