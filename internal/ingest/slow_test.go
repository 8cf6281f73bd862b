package ingest

import (
	"bytes"
	"io"
)

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// newSlowBody returns a body whose last byte comes when finish is called.
func newSlowBody(b []byte) (body io.Reader, finish func()) {
	last := make(chan struct{})
	return io.MultiReader(bytes.NewReader(b[:len(b)-1]), waitingReader(last), bytes.NewReader(b[len(b)-1:])), func() { close(last) }
}

// waitingReader ends once its channel is closed.
type waitingReader chan struct{}

func (r waitingReader) Read([]byte) (int, error) {
	<-r
	return 0, io.EOF
}
