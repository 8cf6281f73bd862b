package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

var (
	// ErrRoot reports a store that is not the one which the process has opened.
	ErrRoot = errors.New("the root of the store is gone, or is that of another store; the store is used again once it is back")
	// ErrUnchecked reports a write before the check of the store has succeeded. It is an
	// objstore.ErrReadOnly.
	ErrUnchecked = fmt.Errorf("%w: its check has not succeeded yet", objstore.ErrReadOnly)
)

const (
	identityVersion = 1
	// trusted is how long the identity of a bucket counts after it was read: an empty listing or a
	// missing object makes a process read it again then. It is also the least time between two
	// attempts to create an identity that fail.
	trusted = 10 * time.Second
	// pause is the least time between two reads of the identity while the root is another one.
	pause = time.Second
)

// Place is implemented by stores that notice cheaply when their root is another one.
type Place interface {
	// Same reports whether the store's path still leads to the folder that was opened.
	Same() bool
	// Reopen makes the folder to which the path leads now the one that was opened.
	Reopen() error
}

// Rooted is a store that refuses its use if its root is gone or is another one, such as the empty
// directory below a file system that is no longer mounted: its empty listings would be answers
// without data, and it would be written to. It also refuses writes until the store was checked.
//
// The object key.Identity identifies a store (schemas/keys.md). The first write creates it, on
// condition that it does not exist. A store without it, from before there was one, or from a reader
// that may not write, is used as it is.
type Rooted struct {
	objstore.Store
	place  Place // nil: a bucket
	now    func() time.Time
	logger *slog.Logger

	lost    atomic.Bool  // the root was another one when it was last looked at
	writing atomic.Bool  // writes are allowed
	known   atomic.Bool  // id is known
	read    atomic.Int64 // when the identity was last read, ns

	mu    sync.Mutex // held while the identity is read or created
	id    string
	tried time.Time // to create it
}

// NewRooted returns the store with the identity that it has at present. It allows no writes. place
// is nil for a bucket. The store is valid, and without an identity, if reading that fails: the
// process may not read the object, or the store does not answer.
func NewRooted(ctx context.Context, store objstore.Store, place Place, logger *slog.Logger, now func() time.Time) (*Rooted, error) {
	s := &Rooted{Store: store, place: place, now: now, logger: logger}
	id, err := s.identity(ctx)
	s.learn(id)
	return s, err
}

// Objects returns s as an objstore.Local exactly if the store below is one.
func (s *Rooted) Objects() objstore.Store { return objstore.Over(s.Store, s) }

// AllowWrites allows writes from now on.
func (s *Rooted) AllowWrites() { s.writing.Store(true) }

// Writes returns ErrUnchecked unless writes are allowed.
func (s *Rooted) Writes() error {
	if s.writing.Load() {
		return nil
	}
	return ErrUnchecked
}

// Root returns ErrRoot if the root is another one. It costs a stat in a directory and nothing in a
// bucket, where only requests that find nothing reveal it.
func (s *Rooted) Root(ctx context.Context) error { return s.check(ctx, false) }

// check is Root. Nothing was found where objects may be expected if empty.
func (s *Rooted) check(ctx context.Context, empty bool) error {
	if s.place != nil && s.place.Same() {
		if s.lost.Load() {
			s.found(true)
		}
		return nil
	}
	if s.place == nil && !s.lost.Load() && (!empty || s.age() < trusted) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.age() < pause {
		if s.lost.Load() {
			return ErrRoot
		}
		if s.place == nil {
			return nil // another request has read it
		}
	}
	id, err := s.identity(ctx)
	switch {
	case s.id == "" && s.place == nil: // another process may have written the first object
		s.learn(id)
		return nil
	case err != nil:
		return err
	case id == "" || id != s.id:
		s.found(false)
		return ErrRoot
	case s.place != nil:
		err = s.place.Reopen()
	}
	if err == nil {
		s.found(true)
	}
	return err
}

// found notes whether the root is the right one.
func (s *Rooted) found(same bool) {
	if s.lost.Swap(!same) == !same {
		return
	}
	if same {
		s.logger.Info("the store is back")
	} else {
		s.logger.Error("queries and writes are refused", "error", ErrRoot)
	}
}

func (s *Rooted) age() time.Duration { return time.Duration(s.now().UnixNano() - s.read.Load()) }

func (s *Rooted) learn(id string) {
	s.id = id
	s.known.Store(id != "")
}

// document is the object key.Identity.
type document struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
}

// identity reads the store's identity, "" if it has none.
func (s *Rooted) identity(ctx context.Context) (string, error) {
	b, _, err := objstore.ReadAll(ctx, s.Store, key.Identity)
	s.read.Store(s.now().UnixNano())
	if errors.Is(err, objstore.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the identity of the store: %w", err)
	}
	var d document
	if _, err = checksum.Verify(b); err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err == nil {
		err = checksum.CheckVersion("the identity of a store", strconv.Itoa(d.Version), identityVersion)
	}
	if err == nil && d.ID == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("read the identity of the store in %s: %w", key.Identity, err)
	}
	return d.ID, nil
}

// identify makes sure that the store has an identity. A store that refuses the object only is used
// without it.
func (s *Rooted) identify(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.Load() || s.now().Sub(s.tried) < trusted {
		return
	}
	s.tried = s.now()
	d := document{identityVersion, rand.Text()}
	b, err := checksum.Marshal(d)
	if err == nil {
		_, err = s.Store.Put(ctx, key.Identity, bytes.NewReader(append(b, '\n')), objstore.Condition{IfAbsent: true})
	}
	if errors.Is(err, objstore.ErrPrecondition) { // another process was faster, or lost the answer
		d.ID, err = s.identity(ctx)
	}
	if err != nil {
		s.logger.Warn("the store has no identity, so that another one in its place may not be noticed", "error", err)
		return
	}
	s.learn(d.ID)
}

// change begins a change of the store.
func (s *Rooted) change(ctx context.Context) error {
	return errors.Join(s.check(ctx, false), s.Writes())
}

// Get implements objstore.Store.
func (s *Rooted) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	r, o, err := s.Store.Get(ctx, k, offset, length)
	if errors.Is(err, objstore.ErrNotFound) {
		if cerr := s.check(ctx, true); cerr != nil {
			return nil, o, cerr
		}
	}
	return r, o, err
}

// Put implements objstore.Store.
func (s *Rooted) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if err := s.change(ctx); err != nil {
		return "", fmt.Errorf("put %q: %w", k, err)
	}
	if !s.known.Load() && !strings.HasPrefix(k, Prefix) { // the store may fail its check
		s.identify(ctx)
	}
	return s.Store.Put(ctx, k, body, cond)
}

// Delete implements objstore.Store.
func (s *Rooted) Delete(ctx context.Context, k string) error {
	if err := s.change(ctx); err != nil {
		return fmt.Errorf("delete %q: %w", k, err)
	}
	return s.Store.Delete(ctx, k)
}

// DeleteAll implements objstore.BatchDeleter.
func (s *Rooted) DeleteAll(ctx context.Context, keys []string) (int, error) {
	if err := s.change(ctx); err != nil {
		return 0, fmt.Errorf("delete objects: %w", err)
	}
	return objstore.DeleteAll(ctx, s.Store, keys)
}

// List implements objstore.Store.
func (s *Rooted) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return listed(ctx, s, s.Store.List(ctx, prefix, startAfter))
}

// ListExcept implements objstore.ExceptLister.
func (s *Rooted) ListExcept(ctx context.Context, prefix, startAfter string, skip func(key string) bool) iter.Seq2[objstore.Object, error] {
	return listed(ctx, s, objstore.ListExcept(ctx, s.Store, prefix, startAfter, skip))
}

// ListFolders implements objstore.Store.
func (s *Rooted) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return listed(ctx, s, s.Store.ListFolders(ctx, prefix))
}

// listed returns a listing that fails if the root is another one before or, of an empty listing,
// after it.
func listed[T any](ctx context.Context, s *Rooted, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := s.check(ctx, false); err != nil {
			yield(none, fmt.Errorf("list objects: %w", err))
			return
		}
		found := false
		for v, err := range all {
			if found = true; !yield(v, err) {
				return
			}
		}
		if found {
			return
		}
		if err := s.check(ctx, true); err != nil {
			yield(none, fmt.Errorf("list objects: %w", err))
		}
	}
}
