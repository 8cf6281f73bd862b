// Package memstore is an in-memory object store for tests. It implements objstore.Store exactly,
// injects faults that a test requests, and records violations of the protocol of immutable objects.
package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Settings configure a Store. The zero value is a plain store.
type Settings struct {
	// Now is the store's clock; nil is time.Now.
	Now func() time.Time
	// Resolution is the resolution of the store's clock: S3 has one second. With zero, every Put
	// has a distinct Modified.
	Resolution time.Duration
	// Faults is called before each operation; nil means no faults. It may be called concurrently.
	Faults func(Call) Fault
	// Immutable reports whether a key is written once. A Put of other bytes under such a key than
	// it ever had is a violation, even after a Delete.
	Immutable func(key string) bool
	// DeletedForever makes a Get of a deleted key a violation.
	DeletedForever bool
}

// Store is an in-memory objstore.Store. ETags are hashes of the bytes, so they are the same in
// every run.
type Store struct {
	settings Settings

	mu         sync.Mutex
	objects    map[string]object
	keys       []string          // of objects, ascending
	lastETag   map[string]string // of every key that ever existed
	last       time.Time         // the latest time that the clock returned
	calls      int
	violations []string
}

type object struct {
	objstore.Object
	bytes []byte // not modified after the Put
}

// New returns an empty store.
func New(s Settings) *Store {
	if s.Now == nil {
		s.Now = time.Now
	}
	return &Store{settings: s, objects: map[string]object{}, lastETag: map[string]string{}}
}

// Violations returns the violations of the protocol, in order of time.
func (s *Store) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Keys returns all keys in ascending order. It is not a Call and has no faults.
func (s *Store) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	f, err := s.begin(ctx, Call{Op: Get, Key: key, Offset: offset, Length: length})
	if err != nil {
		return nil, objstore.Object{}, err
	}
	o, err := s.find(key)
	if err != nil {
		return nil, objstore.Object{}, err
	}
	start, n, err := objstore.Span(offset, length, o.Size)
	if err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, err)
	}
	if f.Err != nil && f.When == After {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, f.Err)
	}
	if f.Err != nil {
		n /= 2
	}
	return &body{ctx: ctx, r: bytes.NewReader(o.bytes[start : start+n]), err: f.Err}, o.Object, nil
}

func (s *Store) find(key string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if ok {
		return o, nil
	}
	if _, deleted := s.lastETag[key]; deleted && s.settings.DeletedForever {
		s.violations = append(s.violations, fmt.Sprintf("get of deleted key %s", key))
	}
	return object{}, fmt.Errorf("get %q: %w", key, objstore.ErrNotFound)
}

// Put implements objstore.Store.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	f, err := s.begin(ctx, Call{Op: Put, Key: key, Cond: cond})
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return "", fmt.Errorf("put %q: read body: %w", key, err)
	}
	etag, err := s.store(key, b, cond)
	if err == nil {
		err = f.Err // f is After: the write took effect, but the caller gets an error
	}
	if err != nil {
		return "", fmt.Errorf("put %q: %w", key, err)
	}
	return etag, nil
}

func (s *Store) store(key string, b []byte, cond objstore.Condition) (string, error) {
	hash := sha256.Sum256(b)
	etag := hex.EncodeToString(hash[:16])
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := s.objects[key]
	if cond.IfAbsent && exists || cond.IfMatch != "" && (!exists || old.ETag != cond.IfMatch) ||
		cond.IfAbsent && cond.IfMatch != "" {
		return "", objstore.ErrPrecondition
	}
	if last, ever := s.lastETag[key]; ever && last != etag && s.settings.Immutable != nil && s.settings.Immutable(key) {
		s.violations = append(s.violations, fmt.Sprintf("put of other bytes under immutable key %s", key))
	}
	if !exists {
		i, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.objects[key] = object{objstore.Object{Key: key, Size: int64(len(b)), ETag: etag, Modified: s.tick()}, b}
	s.lastETag[key] = etag
	return etag, nil
}

// tick returns the next time of the store's clock. The caller holds mu.
func (s *Store) tick() time.Time {
	t := s.settings.Now()
	switch r := s.settings.Resolution; {
	case r > 0:
		t = t.Truncate(r)
	case !t.After(s.last):
		t = s.last.Add(1)
	}
	if t.Before(s.last) {
		t = s.last
	}
	s.last = t
	return t
}

// Now implements objstore.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	f, err := s.begin(ctx, Call{Op: Now})
	if err != nil {
		return time.Time{}, err
	}
	if f.Err != nil {
		return time.Time{}, fmt.Errorf("now: %w", f.Err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tick(), nil
}

// List implements objstore.Store. It shows the state at the time when the iteration begins.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		f, err := s.begin(ctx, Call{Op: List, Key: prefix, StartAfter: startAfter})
		if err != nil {
			yield(objstore.Object{}, err)
			return
		}
		objects := s.match(prefix, startAfter)
		if f.Err != nil { // After and Midway
			objects = objects[:len(objects)/2]
		}
		for _, o := range objects {
			if err := ctx.Err(); err != nil {
				yield(objstore.Object{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !yield(o, nil) {
				return
			}
		}
		if f.Err != nil {
			yield(objstore.Object{}, fmt.Errorf("list %q: %w", prefix, f.Err))
		}
	}
}

// ListFolders implements objstore.Store. It is one Call of Op List, whose Key is the prefix.
func (s *Store) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return Folders(prefix, s.List(ctx, prefix, ""))
}

// Folders yields the folders directly below prefix of the objects of its listing.
func Folders(prefix string, objects iter.Seq2[objstore.Object, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for o, err := range objects {
			if err != nil {
				yield("", err)
				return
			}
			name, _, ok := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/")
			if folder := prefix + name + "/"; ok && folder != last {
				if last = folder; !yield(folder, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) match(prefix, startAfter string) []objstore.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var objects []objstore.Object
	from, _ := slices.BinarySearch(s.keys, max(prefix, startAfter))
	for _, k := range s.keys[from:] {
		if k < prefix || k == startAfter {
			continue
		}
		if !strings.HasPrefix(k, prefix) {
			break
		}
		objects = append(objects, s.objects[k].Object)
	}
	return objects
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	f, err := s.begin(ctx, Call{Op: Delete, Key: key})
	if err != nil {
		return err
	}
	s.mu.Lock()
	if i, found := slices.BinarySearch(s.keys, key); found {
		s.keys = slices.Delete(s.keys, i, i+1)
		delete(s.objects, key)
	}
	s.mu.Unlock()
	if f.Err != nil {
		return fmt.Errorf("delete %q: %w", key, f.Err)
	}
	return nil
}

// begin checks the call, gets its fault and applies the part that precedes the operation.
func (s *Store) begin(ctx context.Context, c Call) (Fault, error) {
	err := ctx.Err()
	if err == nil && c.Op != List && c.Op != Now {
		err = objstore.ValidKey(c.Key)
	}
	if err != nil {
		return Fault{}, fmt.Errorf("%s %q: %w", c.Op, c.Key, err)
	}
	if s.settings.Faults == nil {
		return Fault{}, nil
	}
	s.mu.Lock()
	c.N = s.calls
	s.calls++
	s.mu.Unlock()
	f := s.settings.Faults(c)
	if f.Until != nil {
		select {
		case <-f.Until:
		case <-ctx.Done():
			return Fault{}, fmt.Errorf("%s %q: %w", c.Op, c.Key, ctx.Err())
		}
	}
	if f.Err != nil && (f.When == Before || f.When == Midway && c.writes()) {
		return Fault{}, fmt.Errorf("%s %q: %w", c.Op, c.Key, f.Err)
	}
	return f, nil
}
