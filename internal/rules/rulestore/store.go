package rulestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Store is the part of objstore.Store that Commit needs. Its promises are those of objstore.
type Store interface {
	objstore.Getter
	Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (etag string, err error)
}

const (
	maxRaces  = 100 // lost races of one commit
	maxUnsure = 3   // puts of one commit with unknown effect
)

// ErrConflict reports that other edits came first too often: try again.
var ErrConflict = errors.New("too many concurrent changes of the rules, try again")

// Read returns the rules of a tenant and the version of their object. A tenant without an object
// has no rules, and the version "".
func Read(ctx context.Context, store objstore.Getter, tenant string) (r Rules, etag string, err error) {
	b, obj, err := objstore.ReadAll(ctx, store, key.Rules(tenant))
	if errors.Is(err, objstore.ErrNotFound) {
		return Rules{Version: Version}, "", nil
	}
	if err == nil {
		r, err = Decode(b)
	}
	if err != nil {
		return Rules{}, "", fmt.Errorf("read rules of tenant %s: %w", tenant, err)
	}
	return r, obj.ETag, nil
}

// List yields the tenants that have or had rules, in ascending order of their keys, each with the
// version of its object: the version that Read returns. It stops at the first error, which it
// yields.
func List(ctx context.Context, store objstore.Lister) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		for obj, err := range store.List(ctx, key.RulesPrefix, "") {
			if err != nil {
				yield(Listed{}, fmt.Errorf("list rules: %w", err))
				return
			}
			tenant, err := key.ParseRules(obj.Key)
			if err != nil {
				continue // the key is nobody's
			}
			if !yield(Listed{tenant, obj.ETag}, nil) {
				return
			}
		}
	}
}

// AddTenants returns tenants, which ascend, together with those that have or had rules.
func AddTenants(ctx context.Context, store objstore.Lister, tenants []string) ([]string, error) {
	out := slices.Clone(tenants)
	for l, err := range List(ctx, store) {
		if err != nil {
			return nil, err
		}
		if at, found := slices.BinarySearch(out, l.Tenant); !found {
			out = slices.Insert(out, at, l.Tenant)
		}
	}
	return out, nil
}

// Listed is a tenant that List found.
type Listed struct{ Tenant, ETag string }

// Commit edits the rules of a tenant and returns the result. edit must have no side effect, because
// it is called again when another edit came first. An edit that changes nothing writes nothing. The
// commit point is the compare-and-swap of the tenant's object.
//
// When the effect of a swap is unknown, the object is read again: its id shows whether the swap
// took effect. If another edit follows in between, the edit is applied again, which sets the same
// group, or finds nothing to remove.
//
// An error of edit is returned as it is.
func Commit(ctx context.Context, store Store, tenant string, edit func(Rules) (Rules, error)) (Rules, error) {
	var tried []ulid.ULID
	failed := 0
	for races := 0; races <= maxRaces; races++ {
		if races > 0 {
			if err := objstore.AfterRace(ctx, races); err != nil {
				return Rules{}, fmt.Errorf("change rules of tenant %s: %w", tenant, err)
			}
		}
		cur, etag, err := Read(ctx, store, tenant)
		if err != nil {
			return Rules{}, err
		}
		if slices.Contains(tried, cur.ID) {
			return cur, nil
		}
		next, err := edit(cur)
		if err != nil {
			return Rules{}, err
		}
		if slices.EqualFunc(next.Namespaces, cur.Namespaces, func(x, y Namespace) bool {
			return x.Name == y.Name && slices.EqualFunc(x.Groups, y.Groups, Same)
		}) {
			return cur, nil
		}
		next.Version, next.Generation, next.ID = Version, cur.Generation+1, ulid.MustNew(ulid.Now(), rand.Reader)
		body, err := Encode(next)
		if err != nil {
			return Rules{}, err
		}
		_, err = store.Put(ctx, key.Rules(tenant), bytes.NewReader(body), objstore.Condition{IfAbsent: etag == "", IfMatch: etag})
		if err == nil {
			return next, nil
		}
		// A store may repeat a put whose first answer was lost, and then find its own effect.
		tried = append(tried, next.ID)
		if errors.Is(err, objstore.ErrPrecondition) {
			continue
		}
		if failed++; failed > maxUnsure || ctx.Err() != nil {
			return Rules{}, fmt.Errorf("change rules of tenant %s; the change may have been made: %w", tenant, err)
		}
	}
	return Rules{}, fmt.Errorf("change rules of tenant %s: %w", tenant, ErrConflict)
}
