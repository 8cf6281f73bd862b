package uploadapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/store/objstore"
)

// handler answers with 200, or with the status of an error and its text, as Mimir does.
func (s *stage) handler(handle func(http.ResponseWriter, *http.Request, key.Upload) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, err := s.parse(r)
		if err == nil {
			err = handle(w, r, u)
		}
		if err == nil {
			return // with 200
		}
		code := status(err)
		if code == http.StatusServiceUnavailable && r.Context().Err() == nil {
			s.log.Error("a request for an upload failed", "tenant", u.Tenant, "block", r.PathValue("block"), "path", r.URL.Path, "err", err)
		}
		if l, ok := errors.AsType[*LimitError](err); ok {
			s.limited.WithLabelValues(l.Limit).Inc()
		}
		http.Error(w, err.Error(), code)
	})
}

// parse returns the upload that a request names.
func (s *stage) parse(r *http.Request) (u key.Upload, err error) {
	if !s.set.Enabled {
		return u, refuse(http.StatusBadRequest, "block upload is disabled: --compactor.block-upload-enabled enables it")
	}
	if u.Tenant, err = tenant.FromRequest(r); err != nil {
		return u, &refusal{http.StatusBadRequest, err}
	}
	name := r.PathValue("block")
	if u.ID, err = ulid.ParseStrict(name); err != nil || u.ID.String() != name {
		return u, refuse(http.StatusBadRequest, "invalid block ID %q: want a ULID", name)
	}
	return u, nil
}

// errExists refuses what would change a block that is imported.
var errExists = &refusal{http.StatusConflict, errors.New("block already exists")}

// errAbsent reports an upload that was not started.
var errAbsent = &refusal{http.StatusNotFound, errors.New("block upload not started: send its meta.json to …/start first")}

// errExpired refuses to start an upload that is being deleted.
var errExpired = &refusal{http.StatusServiceUnavailable, errors.New("the upload has expired and is being deleted: try again later")}

// start takes the meta.json of a block. An upload that was started before begins anew; the files
// that are there stay.
func (s *stage) start(w http.ResponseWriter, r *http.Request, u key.Upload) error {
	if err := s.receiving.Acquire(r.Context(), 1); err != nil {
		return err
	}
	defer s.receiving.Release(1)
	in := s.body(w, r)
	body, err := io.ReadAll(io.LimitReader(in, MaxMeta+1))
	if err != nil {
		return s.unread(w, "meta.json", err)
	}
	in.End()
	if len(body) > MaxMeta {
		return &refusal{http.StatusRequestEntityTooLarge, &LimitError{
			Limit: LimitMeta, Text: fmt.Sprintf("meta.json has more than %d bytes, the limit: divide the block", MaxMeta),
		}}
	}
	now, err := s.store.Now(r.Context())
	if err != nil {
		return err
	}
	announced, err := Announce(u.ID, body, Limits{Bytes: s.set.MaxBytes, Range: s.set.MaxRange, Retention: s.im.RetentionOf(u.Tenant)}, now)
	if err != nil {
		return err
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := s.admit(r.Context(), u); err != nil {
		return err
	}
	_, err = s.change(r.Context(), u, func(current State) (State, error) {
		switch {
		case current.Expired:
			return current, errExpired
		case current.Result == Complete:
			return current, errExists
		case current.Result == Validating:
			return current, refuse(http.StatusConflict, "the block is complete, and is being validated")
		}
		return announced, nil
	})
	return err
}

// file takes a file of a block.
func (s *stage) file(w http.ResponseWriter, r *http.Request, u key.Upload) error {
	path := r.URL.Query().Get("path")
	if !key.IsUploadFile(path) {
		return refuse(http.StatusBadRequest, "invalid path %q: want index, tombstones, or chunks/ and six digits", path)
	}
	if err := s.receiving.Acquire(r.Context(), 1); err != nil {
		return err
	}
	defer s.receiving.Release(1)
	state, err := s.open(r.Context(), u)
	if err != nil {
		return err
	}
	f, ok := state.File(path)
	if !ok {
		return refuse(http.StatusBadRequest, "file %s is not in thanos.files of the block's meta.json", path)
	}
	if n := r.ContentLength; n >= 0 && n != f.Bytes {
		return wrongLength(f, n)
	}
	return s.receive(w, r, u, f)
}

func wrongLength(f File, n int64) error {
	return refuse(http.StatusBadRequest, "file %s has %d bytes, meta.json says %d", f.Path, n, f.Bytes)
}

// finish begins the import of a block whose files are all there.
func (s *stage) finish(_ http.ResponseWriter, r *http.Request, u key.Upload) error {
	files, err := s.files(r.Context(), u)
	if err != nil {
		return err
	}
	_, err = s.change(r.Context(), u, func(current State) (State, error) {
		switch {
		case !current.Exists():
			return current, errAbsent
		case current.Result == Complete:
			return current, errExists
		case current.Result == Validating:
			return current, nil // a process that has died may have begun it
		}
		return current.Finish(files)
	})
	if err != nil {
		return err
	}
	s.queue.add(u)
	return nil
}

// answer is that of check.
type answer struct {
	Result Result `json:"result"`
	Error  string `json:"error,omitempty"`
}

// check answers how far an upload is.
func (s *stage) check(w http.ResponseWriter, r *http.Request, u key.Upload) error {
	state, _, err := s.read(r.Context(), u)
	if err != nil {
		return err
	}
	if !state.Exists() {
		return errAbsent
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(answer{state.Result, state.Error})
	return nil
}

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
