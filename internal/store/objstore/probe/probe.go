// Package probe checks at the start of a process that an object store has the properties that
// Promlake's safety depends on: conditional writes and strong reads. An S3-compatible server that
// ignores If-Match passes every test of reading and writing, but loses acknowledged deletions when
// two processes commit concurrently.
package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	// Prefix is the prefix of the keys that Check writes. It is outside the key grammar, so no
	// other code reads or lists them.
	Prefix = "promlake-probe/"
	// cleanupTimeout bounds the deletion of the keys after the check, even if the caller's context
	// has ended.
	cleanupTimeout = 30 * time.Second
	// attempts bounds how often a check that was not answered is made. The waits in between are
	// those of objstore.AfterRace, together at most 6 s.
	attempts = 8
)

// ErrUnfit reports a store that lacks a property. Errors that wrap it are of type *Unfit.
var ErrUnfit = errors.New("the object store is unfit for Promlake")

// Property is a guarantee of objstore.Store.
type Property string

// The properties that Check tests, in this order.
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

// Unfit is the error of a store that lacks a property.
type Unfit struct {
	Property Property
	Saw      string // the store's actual behaviour
}

// Error implements error.
func (u *Unfit) Error() string {
	advice := adviceStrong
	switch u.Property {
	case IfAbsent, ETags, IfMatchWrong, IfMatchAbsent, IfMatchRight:
		advice = adviceConditions
	}
	return fmt.Sprintf("%v: it breaks the promise %q: %s; %s", ErrUnfit, string(u.Property), u.Saw, advice)
}

// Unwrap returns ErrUnfit.
func (u *Unfit) Unwrap() error { return ErrUnfit }

// Check tests every property on fresh keys below Prefix, and deletes them at the end, even after a
// failure. Concurrent checks do not affect each other. It sends 7 puts, 9 gets, 6 listings and 4
// deletes. If one of them gets no answer, the check is made anew with other keys, because a put
// whose answer was lost may have taken effect. An error that does not wrap ErrUnfit means that the
// store could not be tested in several attempts, for example because it is not reachable, is full or
// denies access.
func Check(ctx context.Context, store objstore.Store) error {
	var left []string
	err := persist(ctx, func() error {
		folder := Prefix + rand.Text() + "/"
		c := &check{store: store, folder: folder, a: folder + "a", b: folder + "b", absent: folder + "c"}
		left = append(left, c.a, c.b, c.absent)
		for _, step := range []func(context.Context) error{c.write, c.ifAbsent, c.ifMatch, c.list, c.delete} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, cleanup(ctx, store, left, err == nil)); err != nil {
		return fmt.Errorf("check object store: %w", err)
	}
	return nil
}

// persist calls f until it succeeds or finds the store unfit, ctx ends, or all attempts are made.
func persist(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil || errors.Is(err, ErrUnfit) || n == attempts || objstore.AfterRace(ctx, n) != nil {
			return err
		}
	}
}

type check struct {
	store        objstore.Store
	folder       string // of all keys
	a, b, absent string
	etagA, etagB string
}

// write creates a, and expects it in a read and a listing.
func (c *check) write(ctx context.Context) (err error) {
	if c.etagA, err = c.put(ctx, c.a, "one", objstore.Condition{IfAbsent: true}); err != nil {
		return err
	}
	if err := c.holds(ctx, c.a, "one", c.etagA, ReadAfterWrite); err != nil {
		return err
	}
	return c.lists(ctx, c.folder, "", ListAfterWrite, c.a)
}

// ifAbsent tries to put a second object under a.
func (c *check) ifAbsent(ctx context.Context) error {
	return c.refuses(ctx, c.a, "two", objstore.Condition{IfAbsent: true}, IfAbsent)
}

// ifMatch replaces a with the right ETag, after attempts with wrong ones.
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
		// Something in between may have sent the put again, after an answer that it lost.
		if took, rerr := c.read(ctx, c.a); rerr != nil || took.value == "three" {
			return errors.Join(fmt.Errorf("%w, and the object has its bytes", err), rerr)
		}
		return &Unfit{IfMatchRight, "the write was refused"}
	case err != nil:
		return err
	}
	if err := c.holds(ctx, c.a, "three", c.etagA, ReadAfterWrite); err != nil {
		return err
	}
	return c.refuses(ctx, c.a, "three", objstore.Condition{IfMatch: first}, IfMatchWrong)
}

// list lists parts of the folder.
func (c *check) list(ctx context.Context) error {
	return errors.Join(
		c.lists(ctx, c.folder, "", ListAfterWrite, c.a, c.b),
		c.lists(ctx, c.folder, c.a, ListBounds, c.b),
		c.lists(ctx, c.folder, c.b, ListBounds),
		c.lists(ctx, c.b, "", ListBounds, c.b),
	)
}

// delete deletes a, and expects that it is gone.
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

// cleanup deletes the keys of all attempts, and is persistent if the store has passed the check.
func cleanup(ctx context.Context, store objstore.Store, left []string, passed bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	all := func() error {
		for ; len(left) > 0; left = left[1:] {
			if err := store.Delete(ctx, left[0]); err != nil {
				return fmt.Errorf("remove the check's object: %w", err)
			}
		}
		return nil
	}
	if !passed {
		return all()
	}
	return persist(ctx, all)
}

func (c *check) put(ctx context.Context, key, value string, cond objstore.Condition) (string, error) {
	return c.store.Put(ctx, key, strings.NewReader(value), cond)
}

// refuses expects that a put of other bytes under an existing key is rejected and changes nothing.
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

// version is the value and ETag that a read returned.
type version struct{ value, etag string }

func (c *check) read(ctx context.Context, key string) (version, error) {
	b, o, err := objstore.ReadAll(ctx, c.store, key)
	if err != nil {
		return version{}, err
	}
	return version{string(b), o.ETag}, nil
}

// holds expects that a key has this version.
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

// lists expects that a listing has exactly these keys.
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
