// Package probe checks at the start of a process that an object store keeps the promises on which
// Promlake's safety rests: conditional writes and strong reads. A server that speaks S3 but ignores
// If-Match answers every test of reading and writing, and loses acknowledged deletions when two
// processes commit at once.
package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/objstore"
)

const (
	// Prefix begins the keys that Check writes. It is outside of the key grammar, so no other part
	// reads or lists them.
	Prefix = "promlake-probe/"
	// cleanupTimeout bounds the deletion of the keys after the check, also when the caller's
	// context has ended.
	cleanupTimeout = 30 * time.Second
)

// ErrUnfit reports a store that breaks a promise. Errors that wrap it are of type *Unfit.
var ErrUnfit = errors.New("the object store is unfit for Promlake")

// Property is a promise of objstore.Store.
type Property string

// The properties that Check proves, in the order in which it does.
const (
	ReadAfterWrite   Property = "a read after a write returns what was written"
	ListAfterWrite   Property = "a listing after a write shows the object"
	ListBounds       Property = "a listing keeps to its prefix and its start"
	IfAbsent         Property = "If-None-Match: * refuses to replace an object"
	ETags            Property = "objects with different bytes have different ETags"
	IfMatchWrong     Property = "If-Match refuses the ETag of another version"
	IfMatchAbsent    Property = "If-Match refuses to create an object"
	IfMatchRight     Property = "If-Match accepts the ETag of the present version"
	ReadAfterDelete  Property = "a read after a delete finds nothing"
	ListAfterDelete  Property = "a listing after a delete does not show the object"
	adviceConditions          = "use Amazon S3, or a server with conditional writes (If-None-Match and If-Match on PutObject)"
	adviceStrong              = "use a store with strong consistency, without a cache or an asynchronous replica in between"
)

// advice says what to do about a property that does not hold.
func (p Property) advice() string {
	switch p {
	case IfAbsent, ETags, IfMatchWrong, IfMatchAbsent, IfMatchRight:
		return adviceConditions
	default:
		return adviceStrong
	}
}

// Unfit is the error of a store that breaks a property.
type Unfit struct {
	Property Property
	Saw      string // what the store did instead
}

// Error implements error.
func (u *Unfit) Error() string {
	return fmt.Sprintf("%v: it breaks the promise %q: %s; %s", ErrUnfit, string(u.Property), u.Saw, u.Property.advice())
}

// Unwrap makes errors.Is(err, ErrUnfit) true.
func (u *Unfit) Unwrap() error { return ErrUnfit }

// Check proves every property on fresh keys below Prefix, and deletes them at its end, also when it
// fails. Concurrent checks do not disturb each other. It sends 7 puts, 9 gets, 6 listings and 4
// deletes. An error that does not wrap ErrUnfit says that the store could not be asked, for example
// because it is not reachable or because access is denied.
func Check(ctx context.Context, store objstore.Store) (err error) {
	folder := Prefix + rand.Text() + "/"
	c := &check{store: store, folder: folder, a: folder + "a", b: folder + "b", absent: folder + "c"}
	defer func() {
		if err = errors.Join(err, c.cleanup(ctx)); err != nil {
			err = fmt.Errorf("check object store: %w", err)
		}
	}()
	for _, step := range []func(context.Context) error{c.write, c.ifAbsent, c.ifMatch, c.list, c.delete} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type check struct {
	store        objstore.Store
	folder       string // of all keys
	a, b, absent string
	etagA, etagB string
}

// write creates a, reads it and lists it.
func (c *check) write(ctx context.Context) (err error) {
	if c.etagA, err = c.put(ctx, c.a, "one", objstore.Condition{IfAbsent: true}); err != nil {
		return err
	}
	if err := c.holds(ctx, c.a, "one", c.etagA, ReadAfterWrite); err != nil {
		return err
	}
	return c.lists(ctx, c.folder, "", ListAfterWrite, c.a)
}

// ifAbsent puts a second object under a.
func (c *check) ifAbsent(ctx context.Context) error {
	return c.refuses(ctx, c.a, "two", objstore.Condition{IfAbsent: true}, IfAbsent)
}

// ifMatch replaces a once with the right ETag, after it has tried wrong ones.
func (c *check) ifMatch(ctx context.Context) (err error) {
	if c.etagB, err = c.put(ctx, c.b, "two", objstore.Condition{IfAbsent: true}); err != nil {
		return err
	}
	if c.etagB == c.etagA {
		return &Unfit{ETags, fmt.Sprintf("two objects have the ETag %s", c.etagA)}
	}
	if err := c.refuses(ctx, c.a, "two", objstore.Condition{IfMatch: c.etagB}, IfMatchWrong); err != nil {
		return err
	}
	_, err = c.put(ctx, c.absent, "one", objstore.Condition{IfMatch: c.etagA})
	switch {
	case err == nil:
		return &Unfit{IfMatchAbsent, "the write was accepted"}
	case !errors.Is(err, objstore.ErrPrecondition):
		return err
	}
	first := c.etagA
	c.etagA, err = c.put(ctx, c.a, "three", objstore.Condition{IfMatch: first})
	switch {
	case errors.Is(err, objstore.ErrPrecondition):
		return &Unfit{IfMatchRight, "the write was refused"}
	case err != nil:
		return err
	}
	if err := c.holds(ctx, c.a, "three", c.etagA, ReadAfterWrite); err != nil {
		return err
	}
	return c.refuses(ctx, c.a, "three", objstore.Condition{IfMatch: first}, IfMatchWrong)
}

// list asks for parts of the folder.
func (c *check) list(ctx context.Context) error {
	return errors.Join(
		c.lists(ctx, c.folder, "", ListAfterWrite, c.a, c.b),
		c.lists(ctx, c.folder, c.a, ListBounds, c.b),
		c.lists(ctx, c.folder, c.b, ListBounds),
		c.lists(ctx, c.b, "", ListBounds, c.b),
	)
}

// delete removes a.
func (c *check) delete(ctx context.Context) error {
	if err := c.store.Delete(ctx, c.a); err != nil {
		return err
	}
	_, err := c.read(ctx, c.a)
	switch {
	case err == nil:
		return &Unfit{ReadAfterDelete, "the object was read"}
	case !errors.Is(err, objstore.ErrNotFound):
		return err
	}
	return c.lists(ctx, c.folder, "", ListAfterDelete, c.b)
}

// cleanup deletes all keys. Deleting an absent key is no error.
func (c *check) cleanup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, k := range []string{c.a, c.b, c.absent} {
		if err := c.store.Delete(ctx, k); err != nil {
			errs = append(errs, fmt.Errorf("remove the check's object: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (c *check) put(ctx context.Context, key, value string, cond objstore.Condition) (string, error) {
	return c.store.Put(ctx, key, strings.NewReader(value), cond)
}

// refuses proves that a put of other bytes under a key that exists is refused and changes nothing.
func (c *check) refuses(ctx context.Context, key, value string, cond objstore.Condition, p Property) error {
	before, err := c.read(ctx, key)
	if err != nil {
		return err
	}
	switch _, err := c.put(ctx, key, value+" refused", cond); {
	case err == nil:
		return &Unfit{p, "the write was accepted"}
	case !errors.Is(err, objstore.ErrPrecondition):
		return err
	}
	after, err := c.read(ctx, key)
	if err != nil {
		return err
	}
	if after != before {
		return &Unfit{p, fmt.Sprintf("the write was refused, but the object changed from %+v to %+v", before, after)}
	}
	return nil
}

// version is an object as a read returned it.
type version struct{ value, etag string }

func (c *check) read(ctx context.Context, key string) (v version, err error) {
	r, o, err := c.store.Get(ctx, key, 0, -1)
	if err != nil {
		return version{}, err
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return version{}, fmt.Errorf("read %q: %w", key, err)
	}
	return version{string(b), o.ETag}, nil
}

// holds proves that a key has this version.
func (c *check) holds(ctx context.Context, key, value, etag string, p Property) error {
	got, err := c.read(ctx, key)
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	if want := (version{value, etag}); err != nil || got != want {
		return &Unfit{p, fmt.Sprintf("wrote %+v, read %+v", want, got)}
	}
	return nil
}

// lists proves that a listing has these keys.
func (c *check) lists(ctx context.Context, prefix, startAfter string, p Property, want ...string) error {
	var got []string
	for o, err := range c.store.List(ctx, prefix, startAfter) {
		if err != nil {
			return err
		}
		got = append(got, o.Key)
	}
	if !slices.Equal(got, want) {
		return &Unfit{p, fmt.Sprintf("the listing of %q after %q has %q, want %q", prefix, startAfter, got, want)}
	}
	return nil
}
