package lambdatest

import (
	"bytes"
	"io"
	"sync"
)

// LogTo returns a writer that copies each line into a test's log until the test ends. It may be
// called concurrently.
func LogTo(t TB) io.Writer {
	l := &lines{log: t.Logf}
	t.Cleanup(l.stop)
	return l
}

type lines struct {
	mu   sync.Mutex
	log  func(format string, args ...any) // nil after the end of the test
	part []byte                           // the beginning of an incomplete line
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		if l.log != nil {
			l.log("%s", line)
		}
		l.part = rest
	}
}

func (l *lines) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = nil
}
