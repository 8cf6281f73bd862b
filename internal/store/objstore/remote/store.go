// Package remote makes an objstore.Store of the protocol of a bucket. Transient failures are
// retried after a random wait; a body that breaks is resumed where it broke. A retried conditional
// write can conflict with its own first attempt; Store.Put describes how that is detected.
package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/promlake/promlake/internal/store/objstore"
)

// ClockKey is the key that Now requests. No such object exists; only the Date of the answer
// matters.
const ClockKey = "promlake-clock"

// Protocol sends one request per call and retries none. Errors are explained by Fault.
type Protocol interface {
	// Get requests length > 0 bytes from offset, or all if length is negative. A negative offset
	// requests the last -offset bytes. Unless etag is "", it fails if the object has another one.
	Get(ctx context.Context, name string, offset, length int64, etag string) (Answer, error)
	// Head returns an object's description, and the token that was put with it.
	Head(ctx context.Context, name string) (o objstore.Object, token string, err error)
	// Put writes an object, and the token unless that is "".
	Put(ctx context.Context, name string, body *io.SectionReader, cond objstore.Condition, token string) (etag string, err error)
	Delete(ctx context.Context, name string) error
	// List requests objects, whose keys are names, with prefix from start on, or somewhat before;
	// with folders, only the folders there, as objects whose keys end with a slash. token is that
	// of the page before, or "". next is "" for the last page.
	List(ctx context.Context, prefix, start string, folders bool, token string) (page []objstore.Object, next string, err error)
	// Fault explains an error of the other methods.
	Fault(err error) Fault
}

// Stager is a Protocol that writes large objects in several requests.
type Stager interface {
	// StageAbove is the size (bytes) of the largest object that Put writes.
	StageAbove() int64
	// Stage uploads an object, which appears when it is committed, with the token. It repeats its
	// requests by itself.
	Stage(ctx context.Context, name string, body *io.SectionReader, token string) (Upload, error)
}

// Upload is an object that was uploaded and does not exist yet.
type Upload interface {
	// Commit makes the object exist, in one request.
	Commit(ctx context.Context, cond objstore.Condition) (etag string, err error)
	// Drop removes what was uploaded, also after a Commit whose answer was lost.
	Drop(ctx context.Context) error
}

// ErrDenied is what a Fault means if the caller may not read an object, which may not exist: a
// bucket does not tell a caller without the permission to list that an object is missing, and not
// every server considers a permission that is limited to a prefix of names.
var ErrDenied = errors.New("access denied")

// Fault explains the error of a request.
type Fault struct {
	Status  int         // of the HTTP answer; 0 if there was none
	Header  http.Header // of the answer
	Means   error       // a sentinel error of package objstore, ErrDenied or nil
	Final   bool        // another attempt is of no use
	Again   bool        // another attempt may succeed, whatever the status
	Refused bool        // the request had no effect, whatever the status
	Stale   bool        // of a Commit: the next attempt needs a new Upload
	Lost    bool        // of a Commit: the Upload is gone, because it was committed or removed
}

// refused reports whether the request certainly had no effect. A missing answer has status 0, a
// truncated one that of a success, and a server may report internal errors after the effect.
func (f Fault) refused() bool {
	return f.Refused || f.Status >= http.StatusMultipleChoices && f.Status < http.StatusInternalServerError
}

func (f Fault) transient() bool {
	return f.Again || !f.Final && (!f.refused() || f.Status == http.StatusTooManyRequests || f.Status == http.StatusRequestTimeout)
}

// Store is an objstore.Store of a Protocol.
type Store struct {
	protocol Protocol
	prefix   string // of the names of all objects: "" or ending with a slash
	policy   Policy
}

var _ objstore.Store = (*Store)(nil)

// New returns the store of the objects below prefix, whose leading and trailing slashes do not
// count.
func New(p Protocol, prefix string, policy Policy) (*Store, error) {
	s := &Store{protocol: p, policy: policy}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		if err := objstore.ValidKey(prefix); err != nil {
			return nil, fmt.Errorf("prefix: %w", err)
		}
		s.prefix = prefix + "/"
	}
	return s, nil
}

// Attempt calls request until it succeeds or fails for good. ambiguous reports whether an attempt
// before the last one may have taken effect.
func Attempt(ctx context.Context, policy Policy, explain func(error) Fault, request func() error) (fault Fault, ambiguous bool, err error) {
	for n := 1; ; n++ {
		if err = ctx.Err(); err != nil {
			return Fault{}, ambiguous, err
		}
		if err = request(); err == nil {
			return Fault{}, ambiguous, nil
		}
		if _, ok := errors.AsType[final](err); ok {
			return Fault{}, ambiguous, Contextual(ctx, err)
		}
		fault = explain(err)
		if ctx.Err() != nil || !fault.transient() || n == policy.MaxAttempts {
			return fault, ambiguous, Contextual(ctx, err)
		}
		ambiguous = ambiguous || !fault.refused()
		if werr := policy.Wait(ctx, n); werr != nil {
			return fault, ambiguous, errors.Join(werr, err)
		}
	}
}

func (s *Store) attempt(ctx context.Context, request func() error) (fault Fault, ambiguous bool, err error) {
	return Attempt(ctx, s.policy, s.protocol.Fault, request)
}

// read is attempt for a request without effect; its error wraps the sentinel that it means.
func (s *Store) read(ctx context.Context, request func() error) error {
	fault, _, err := s.attempt(ctx, request)
	return meaning(fault, err)
}

// meaning adds the sentinel that a fault means to its error.
func meaning(fault Fault, err error) error {
	if err != nil && fault.Means != nil {
		return fmt.Errorf("%w: %w", fault.Means, err)
	}
	return err
}

// Get implements objstore.Store. It sends one request, and a second one for what a range cannot
// express (empty ranges, and suffixes of empty objects).
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	r, o, err := s.get(ctx, key, offset, length)
	if errors.Is(err, ErrDenied) && s.absent(ctx, key) {
		err = objstore.ErrNotFound
	}
	if err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, err)
	}
	return r, o, nil
}

// begin checks ctx and key at the start of every operation on a key.
func (s *Store) begin(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := objstore.ValidKey(key); err != nil {
		return err
	}
	if l := len(s.prefix) + len(key); l > objstore.MaxKeyLen {
		return fmt.Errorf("%w: with the store's prefix it has %d bytes, the limit is %d", objstore.ErrInvalidKey, l, objstore.MaxKeyLen)
	}
	return nil
}

// absent reports whether a listing shows that there is no object with the key, which would be its
// first one.
func (s *Store) absent(ctx context.Context, key string) bool {
	for o, err := range s.List(ctx, key, "") {
		return err == nil && o.Key != key
	}
	return true
}

func (s *Store) get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if err := s.begin(ctx, key); err != nil {
		return nil, objstore.Object{}, err
	}
	name := s.prefix + key
	request := func(offset, length int64, etag string) (a Answer, fault Fault, err error) {
		fault, _, err = s.attempt(ctx, func() (err error) {
			a, err = s.protocol.Get(ctx, name, offset, length, etag)
			return err
		})
		return a, fault, err
	}
	if length != 0 {
		a, fault, err := request(offset, length, "")
		if err == nil {
			resume := func(offset, n int64) (Answer, error) { // without sentinels: what is missing is a version
				rest, _, err := request(offset, n, a.Object.ETag)
				return rest, err
			}
			if a.Object.ETag == "" {
				resume = nil
			}
			r, o, err := open(ctx, s.policy, key, a, offset, length, resume)
			if err != nil {
				return nil, o, errors.Join(err, a.Body.Close())
			}
			return r, o, nil
		}
		err = meaning(fault, err)
		if offset >= 0 || !errors.Is(err, objstore.ErrRange) {
			return nil, objstore.Object{}, err
		}
	}
	var o objstore.Object
	err := s.read(ctx, func() (err error) {
		o, _, err = s.protocol.Head(ctx, name)
		return err
	})
	if err == nil {
		o.Key = key
		_, _, err = objstore.Span(offset, 0, o.Size)
	}
	return http.NoBody, o, err
}

// Put implements objstore.Store.
//
// When the answer to a conditional write is lost, the bucket may refuse the next attempt because of
// the first one, and after a Commit whose answer was lost it knows no such upload. So such writes
// store a random token with their object. After a refusal that follows an ambiguous attempt, they
// read the token of the object: their own token means success. Another token does not show whether
// this write took effect and was overwritten. That is reported as a failure with unknown effect,
// never as ErrPrecondition, because a caller may undo its work when a condition does not hold.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	etag, err := s.put(ctx, key, body, cond)
	if err != nil {
		return "", fmt.Errorf("put %q: %w", key, err)
	}
	return etag, nil
}

func (s *Store) put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (etag string, err error) {
	if err := s.begin(ctx, key); err != nil {
		return "", err
	}
	if cond.IfAbsent && cond.IfMatch != "" {
		return "", objstore.ErrPrecondition
	}
	start, size, err := objstore.Measure(body)
	if err != nil {
		return "", err
	}
	content, ok := body.(io.ReaderAt)
	if !ok { // no program puts such a body
		b, err := io.ReadAll(body)
		if err != nil {
			return "", fmt.Errorf("read body: %w", err)
		}
		content, start = bytes.NewReader(b), 0
	}
	name, token := s.prefix+key, ""
	stager, ok := s.protocol.(Stager)
	staged := ok && size > stager.StageAbove()
	if staged || cond != (objstore.Condition{}) {
		token = rand.Text()
	}
	var up Upload // that is not committed
	defer func() {
		if up == nil {
			return
		}
		if derr := up.Drop(ctx); err != nil { // else an earlier attempt has committed it
			err = errors.Join(err, derr)
		}
	}()
	fault, ambiguous, err := s.attempt(ctx, func() (err error) {
		part := io.NewSectionReader(guarded{content}, start, size)
		if !staged {
			etag, err = s.protocol.Put(ctx, name, part, cond, token)
			return err
		}
		if up == nil {
			if up, err = stager.Stage(ctx, name, part, token); err != nil {
				return final{err}
			}
		}
		if etag, err = up.Commit(ctx, cond); err == nil {
			up = nil
		} else if s.protocol.Fault(err).Stale {
			err = errors.Join(err, up.Drop(ctx))
			up = nil
		}
		return err
	})
	refused := errors.Is(fault.Means, objstore.ErrPrecondition) || cond.IfMatch != "" && errors.Is(fault.Means, objstore.ErrNotFound)
	switch {
	case err == nil:
		return etag, nil
	case !refused && !fault.Lost:
		return "", err
	case refused && !ambiguous:
		return "", fmt.Errorf("%w: %w", objstore.ErrPrecondition, err)
	}
	var o objstore.Object
	var found string
	_, _, herr := s.attempt(ctx, func() (err error) {
		o, found, err = s.protocol.Head(ctx, name)
		return err
	})
	if herr == nil && found == token {
		return o.ETag, nil
	}
	if herr != nil {
		herr = fmt.Errorf("check for own write: %w", herr)
	}
	// without the sentinel that err may wrap
	return "", errors.Join(fmt.Errorf("%w, %v", ErrUnknownEffect, err), herr)
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.begin(ctx, key)
	if err == nil {
		err = s.read(ctx, func() error { return s.protocol.Delete(ctx, s.prefix+key) })
	}
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("delete %q: %w", key, err)
	}
	return nil
}

// List implements objstore.Store. It requests pages as the iteration needs them. Names that are no
// valid keys, such as the folder markers of consoles, are skipped.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return s.list(ctx, prefix, startAfter, false)
}

// ListFolders implements objstore.Store. A folder that contains only the marker object of a console
// is listed, too.
func (s *Store) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for o, err := range s.list(ctx, prefix, "", true) {
			if !yield(o.Key, err) {
				return
			}
		}
	}
}

// list yields objects or, with folders, the folders as objects.
func (s *Store) list(ctx context.Context, prefix, startAfter string, folders bool) iter.Seq2[objstore.Object, error] {
	start := Representable(startAfter)
	if start != "" {
		start = s.prefix + start
	}
	return func(yield func(objstore.Object, error) bool) {
		last, token := startAfter, ""
		for more := true; more; more = token != "" {
			var page []objstore.Object
			_, _, err := s.attempt(ctx, func() (err error) {
				var next string
				if page, next, err = s.protocol.List(ctx, s.prefix+Representable(prefix), start, folders, token); err == nil {
					token = next
				}
				return err
			})
			for _, o := range page {
				key, ok := strings.CutPrefix(o.Key, s.prefix)
				valid := key
				if folders {
					valid = strings.TrimSuffix(key, "/")
				}
				if !ok || objstore.ValidKey(valid) != nil || !strings.HasPrefix(key, prefix) || key <= startAfter {
					continue
				}
				if key <= last {
					err = fmt.Errorf("the bucket lists %q after %q, not in the order of bytes", key, last)
					break
				}
				last, o.Key = key, key
				if !yield(o, nil) {
					return
				}
			}
			if err != nil {
				yield(objstore.Object{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
		}
	}
}

// Representable returns the longest prefix of v without control characters and invalid UTF-8, which
// no key contains and which may not survive encoding in URL and XML.
func Representable(v string) string {
	for i, r := range v {
		_, size := utf8.DecodeRuneInString(v[i:])
		if r < 0x20 || r == 0x7f || r == 0xfffe || r == 0xffff || r == utf8.RuneError && size == 1 {
			return v[:i]
		}
	}
	return v
}

// Now implements objstore.Store. The time is the Date of an answer (RFC 9110, section 6.6.1), with
// a resolution of one second.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	fault, _, err := s.attempt(ctx, func() error {
		_, _, err := s.protocol.Head(ctx, s.prefix+ClockKey)
		return err
	})
	if err == nil {
		return time.Time{}, fmt.Errorf("read the store's clock: the object %s exists", ClockKey)
	}
	// A caller may not be told that an object is missing.
	if fault.Status != http.StatusNotFound && fault.Status != http.StatusForbidden {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	at, perr := http.ParseTime(fault.Header.Get("Date"))
	if perr != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: the Date of the answer: %w", errors.Join(perr, err))
	}
	return at, nil
}
