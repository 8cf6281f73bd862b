package uploadapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/upload"
)

// stall is the time within which a client must send some of a file.
const stall = time.Minute

// turn waits until a request's body may be received. The caller calls end then.
func (s *stage) turn(ctx context.Context) (end func(), err error) {
	select {
	case s.receiving <- struct{}{}:
		return func() { <-s.receiving }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// receive puts the body of a request into the store as a file of an upload. It goes through a
// temporary file, because a store may read it twice.
func (s *stage) receive(w http.ResponseWriter, r *http.Request, u key.Upload, f upload.File) (err error) {
	ctx := r.Context()
	tmp, err := os.CreateTemp(s.im.TempDir, "promlake-upload-*")
	if err != nil {
		return fmt.Errorf("make a temporary file: %w", err)
	}
	defer func() { err = errors.Join(err, tmp.Close()) }()
	if err := os.Remove(tmp.Name()); err != nil { // so that no crash leaves it behind
		return fmt.Errorf("remove the name of a temporary file: %w", err)
	}

	// The client may take longer than --http.read-timeout for a large file, but not pause.
	c := &patient{r.Body, http.NewResponseController(w), nil}
	n, err := io.Copy(tmp, io.LimitReader(c, f.Bytes+1))
	if c.failed != nil {
		return &refusal{http.StatusBadRequest, fmt.Errorf("read file %s: %w", f.Path, c.failed)}
	}
	if err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	if n != f.Bytes {
		return wrongLength(f, n)
	}
	c.wait(time.Time{}) // the rest does not depend on the client
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("rewind a temporary file: %w", err)
	}
	if _, err := s.store.Put(ctx, u.File(f.Path), tmp, objstore.Condition{}); err != nil {
		return fmt.Errorf("write file %s: %w", f.Path, err)
	}
	return nil
}

// patient is a request's body whose client must send something within each stall.
type patient struct {
	body   io.Reader
	conn   *http.ResponseController
	failed error // the first error of the body
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	p.wait(time.Now().Add(stall))
	n, err := p.body.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		p.failed = err
	}
	return n, err
}

// wait sets the time until which the client may send. Where there is no connection it has no
// effect.
func (p *patient) wait(until time.Time) { _ = p.conn.SetReadDeadline(until) }
