package uploadapp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/store/objstore"
)

// A body may arrive at any rate for bodyGrace, and must have bodyRate bytes a second afterwards.
const (
	bodyGrace = time.Minute
	bodyRate  = 8 << 10
)

// limitRate is the name of the limit of the rate, which has no flag.
const limitRate = "body rate"

// receive puts the body of a request into the store as a file of an upload. It goes through a
// temporary file, because a store may read it twice.
func (s *stage) receive(w http.ResponseWriter, r *http.Request, u key.Upload, f File) (err error) {
	ctx := r.Context()
	tmp, err := os.CreateTemp(s.im.TempDir, "promlake-upload-*")
	if err != nil {
		return fmt.Errorf("make a temporary file: %w", err)
	}
	defer func() { err = errors.Join(err, tmp.Close()) }()
	if err := os.Remove(tmp.Name()); err != nil { // so that no crash leaves it behind
		return fmt.Errorf("remove the name of a temporary file: %w", err)
	}

	in := s.body(w, r)
	n, err := io.Copy(tmp, io.LimitReader(in, f.Bytes+1))
	if in.failed != nil {
		return s.unread(w, "file "+f.Path, in.failed)
	}
	if err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	if n != f.Bytes {
		return wrongLength(f, n)
	}
	in.End() // the rest does not depend on the client
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("rewind a temporary file: %w", err)
	}
	if _, err := s.store.Put(ctx, u.File(f.Path), tmp, objstore.Condition{}); err != nil {
		return fmt.Errorf("write file %s: %w", f.Path, err)
	}
	return nil
}

// sent is a request's body. The client may take longer than --http.read-timeout for a large file,
// but not pause.
type sent struct {
	*body.Paced
	failed error // the first error of the body
}

// body returns the body of a request.
func (s *stage) body(w http.ResponseWriter, r *http.Request) *sent {
	return &sent{Paced: body.NewPaced(w, r, s.now, s.times.grace, bodyRate)}
}

// Read implements io.Reader.
func (b *sent) Read(p []byte) (int, error) {
	n, err := b.Paced.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// unread refuses a body that did not arrive.
func (s *stage) unread(w http.ResponseWriter, what string, err error) error {
	if _, slow := errors.AsType[*body.SlowError](err); slow {
		w.Header().Set("Connection", "close") // the rest of the body is not waited for
		return &refusal{http.StatusRequestTimeout, &LimitError{
			Limit: limitRate, Text: fmt.Sprintf("%s arrives too slowly: the limit is %d bytes a second after %s; try again", what, bodyRate, s.times.grace),
		}}
	}
	return &refusal{http.StatusBadRequest, fmt.Errorf("read %s: %w", what, err)}
}
