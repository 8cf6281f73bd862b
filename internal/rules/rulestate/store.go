package rulestate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Store is the part of objstore.Store that Commit needs. Its promises are those of objstore.
type Store interface {
	objstore.Getter
	Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (etag string, err error)
}

// ErrOvertaken reports that another evaluation of the group was committed first.
var ErrOvertaken = errors.New("another evaluation of the rule group was faster")

// LargeError reports a state that exceeds a limit. Nothing was written.
type LargeError struct {
	Bytes, Limit int64
	Flag         string // of the limit
}

// Error implements error.
func (e *LargeError) Error() string {
	return settings.ForOperator(fmt.Sprintf("the state of the rule group has %d bytes, the limit is %d: divide the group, let its rules write fewer series, or raise %s", e.Bytes, e.Limit, e.Flag))
}

// Read returns the state of a group and the version of its object. A group without an object has an
// empty state, and the version "".
func Read(ctx context.Context, store objstore.Getter, tenant, namespace, name string) (g *Group, etag string, err error) {
	g, etag, err = ReadKey(ctx, store, key.RuleState(tenant, namespace, name))
	if errors.Is(err, objstore.ErrNotFound) {
		return &Group{Version: Version, Namespace: namespace, Name: name}, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("state of rule group %q of namespace %q, tenant %s: %w", name, namespace, tenant, err)
	}
	return g, etag, nil
}

// ReadKey returns the state in an object, and its version. Errors: objstore.ErrNotFound.
func ReadKey(ctx context.Context, store objstore.Getter, k string) (g *Group, etag string, err error) {
	b, obj, err := objstore.ReadAll(ctx, store, k)
	if err == nil {
		g, err = Decode(b)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", k, err)
	}
	return g, obj.ETag, nil
}

// Commit replaces the state that has the version etag by g, to which it gives a new ID, and returns
// the new version. The compare-and-swap is the commit point of an evaluation: before it, nothing of
// the evaluation is visible; after it, the outbox will be delivered. Errors: ErrOvertaken,
// *LargeError; after any other error, the effect is not known, and the state must be read again.
func Commit(ctx context.Context, store Store, tenant string, g *Group, etag string, limit int64, flag string) (string, error) {
	g.Version, g.ID = Version, ulid.MustNew(ulid.Now(), rand.Reader)
	body, err := Encode(g)
	if err != nil {
		return "", err
	}
	if n := int64(len(body)); n > limit {
		return "", &LargeError{n, limit, flag}
	}
	next, err := store.Put(ctx, key.RuleState(tenant, g.Namespace, g.Name), bytes.NewReader(body), objstore.Condition{IfAbsent: etag == "", IfMatch: etag})
	if errors.Is(err, objstore.ErrPrecondition) {
		// A store may repeat a put whose first answer was lost, and then find its own effect.
		var now *Group
		if now, next, err = Read(ctx, store, tenant, g.Namespace, g.Name); err == nil && now.ID != g.ID {
			err = ErrOvertaken
		}
	}
	if err != nil {
		return "", fmt.Errorf("commit state of rule group %q of namespace %q, tenant %s: %w", g.Name, g.Namespace, tenant, err)
	}
	return next, nil
}

// Encode returns the document of a state. Equal states have equal bytes.
func Encode(g *Group) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(g); err != nil {
		return nil, fmt.Errorf("encode rule state: %w", err)
	}
	return checksum.Append(b.Bytes())
}

// ErrState reports bytes that are no state of a group, or one of another version.
var ErrState = errors.New("decode rule state")

// Decode reads a document. Errors: ErrState; for damaged bytes also checksum.ErrDamaged.
func Decode(b []byte) (*Group, error) {
	g := &Group{}
	if err := checksum.Unmarshal(b, g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if g.Version != Version {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrState, g.Version, Version)
	}
	for i, r := range g.Rules {
		for j, a := range r.Alerts {
			if a.State != Pending && a.State != Firing && a.State != Resolved {
				return nil, fmt.Errorf("%w: rule %d: unknown state %q of an alert", ErrState, i, a.State)
			}
			if j > 0 && labels.Compare(r.Alerts[j-1].Labels, a.Labels) >= 0 {
				return nil, fmt.Errorf("%w: rule %d: the alerts are not in ascending order", ErrState, i)
			}
		}
	}
	if (g.Outbox.Count > 0) != (len(g.Outbox.Samples) > 0) {
		return nil, fmt.Errorf("%w: the outbox has samples without their number, or a number without samples", ErrState)
	}
	return g, nil
}
