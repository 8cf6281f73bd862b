// Package copyapp copies the tenants of one store to another, as backup, restore and move.
package copyapp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	smithytime "github.com/aws/smithy-go/time"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	// MarkPrefix begins the keys that mark tenants whose copy is not finished, one each.
	MarkPrefix = "promlake-copy/"
	markText   = "a copy of this tenant has not finished, or follows its source\n"
	// copiers is the number of objects that are copied at once.
	copiers = 8
	// maxAttempts bounds the snapshots taken of a tenant because an object was deleted before it
	// was copied.
	maxAttempts = 10
)

// ErrOccupied reports a destination that has objects of the tenant which no unfinished copy has put
// there.
var ErrOccupied = errors.New("the destination has objects of this tenant already")

// Result counts the copied objects of a tenant.
type Result struct {
	Tenant          string
	Copied, Present int64 // objects; Present were there from a copy that did not finish
	Bytes           int64 // of Copied
	Generation      uint64
}

// Tenant copies what a tenant has at one moment after the call, while others write, compact and
// delete in the source. Everything that was acknowledged before the call is in the copy. Nobody may
// use the tenant in the destination meanwhile.
//
//	mark ─▶ snapshot: list segments, read manifest ─▶ copy segments, blocks, records of imports
//	     ─▶ delete what a former attempt left ─▶ rules, states of pushes ─▶ manifest ─▶ unmark
//
// The snapshot is that of a reader, so its objects stay in the source for the deletion delay. When
// an object is gone before it is copied, Tenant takes a new snapshot and keeps what is already
// copied. The manifest is written last: a destination without it has no block and, if the copy was
// interrupted, a mark. Uploads of blocks are not copied: their clients begin anew.
func Tenant(ctx context.Context, from, to objstore.Store, tenant string) (Result, error) {
	c := &copying{from: from, to: to, r: Result{Tenant: tenant}}
	if err := c.run(ctx); err != nil {
		return c.r, fmt.Errorf("copy tenant %s: %w", tenant, err)
	}
	c.r.Copied, c.r.Bytes = c.copied.Load(), c.bytes.Load()
	return c.r, nil
}

type copying struct {
	from, to      objstore.Store
	r             Result
	there         map[string]objstore.Object // by key: what the destination has
	before        map[string]bool            // what a copy that did not finish had put there
	copied, bytes atomic.Int64
	replica       *replica                             // nil: a copy of one moment
	blocks        map[catalog.BlockID]map[string]int64 // of a replica's manifest: the sizes of their files, by key
}

func (c *copying) run(ctx context.Context) error {
	if err := c.mark(ctx); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx)
		if !errors.Is(err, objstore.ErrNotFound) {
			return err
		}
		if attempt == maxAttempts {
			return fmt.Errorf("objects were deleted %d times before they were copied; a longer --compactor.deletion-delay helps: %w", attempt, err)
		}
	}
}

func (c *copying) markKey() string { return MarkPrefix + c.r.Tenant }

// mark claims the tenant in the destination.
func (c *copying) mark(ctx context.Context) error {
	_, err := c.to.Put(ctx, c.markKey(), strings.NewReader(markText), objstore.Condition{IfAbsent: true})
	resumed := errors.Is(err, objstore.ErrPrecondition)
	if err != nil && !resumed {
		return err
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	if len(c.there) > 0 && !resumed {
		return errors.Join(ErrOccupied, c.to.Delete(ctx, c.markKey()))
	}
	c.before = map[string]bool{}
	for k := range c.there {
		if strings.HasPrefix(k, key.ManifestsPrefix(c.r.Tenant)) { // only a commit writes one
			return fmt.Errorf("it has %s: %w", k, ErrInUse)
		}
		c.before[k] = true
	}
	if c.replica != nil {
		return c.read(ctx)
	}
	return nil
}

// look lists the tenant in the destination.
func (c *copying) look(ctx context.Context) error {
	c.there = map[string]objstore.Object{}
	rules := key.Rules(c.r.Tenant)
	for _, prefix := range []string{key.TenantPrefix(c.r.Tenant), rules} {
		for obj, err := range c.to.List(ctx, prefix, "") {
			if err != nil {
				return err
			}
			if prefix != rules || obj.Key == rules {
				c.there[obj.Key] = obj
			}
		}
	}
	return nil
}

// attempt copies one snapshot. ErrNotFound: an object of it is gone.
func (c *copying) attempt(ctx context.Context) error {
	snap, want, err := c.snapshot(ctx)
	if err != nil {
		return err
	}
	if c.replica != nil {
		return c.update(ctx, &snap, want)
	}
	if err := c.copyAll(ctx, want, lanes(&snap, want)); err != nil {
		return err
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	// Delete objects that earlier attempts have copied and the snapshot no longer has: such a
	// segment would be live, because the manifest does not list it as consumed.
	for old := range c.there {
		if _, ok := want[old]; ok {
			continue
		}
		if err := c.to.Delete(ctx, old); err != nil {
			return err
		}
	}
	if err := c.mutables(ctx, map[string]string{}); err != nil {
		return err
	}
	if c.r.Generation = snap.Manifest.Generation; c.r.Generation > 0 {
		raw, err := catalog.Encode(snap.Manifest)
		if err != nil {
			return err
		}
		// From here on the copy counts.
		if _, err := c.to.Put(ctx, key.Manifest(c.r.Tenant), bytes.NewReader(raw), objstore.Condition{}); err != nil {
			return err
		}
	}
	return c.to.Delete(ctx, c.markKey())
}

// snapshot takes a snapshot of the source, and returns the sizes of the immutable objects that a
// copy of it has, by key.
func (c *copying) snapshot(ctx context.Context) (catalog.Snapshot, map[string]int64, error) {
	before, err := c.records(ctx)
	if err != nil {
		return catalog.Snapshot{}, nil, err
	}
	snap, err := catalog.Take(ctx, c.from, c.r.Tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return snap, nil, err
	}
	want, err := c.objects(ctx, &snap)
	if err != nil {
		return snap, nil, err
	}
	// Add the records of the imports that the manifest's blocks have: without them the copy would
	// import the same again, and with others it would not import what it lacks. A record follows
	// the commit of its block, so those that were there before the snapshot count. Of later ones,
	// those count whose blocks the manifest names; it may have dropped their imports since.
	later, err := c.records(ctx)
	if err != nil {
		return snap, nil, err
	}
	named := map[string]bool{}
	for _, block := range snap.Manifest.Blocks {
		named[key.Import(c.r.Tenant, block.ID)] = true
	}
	for _, retired := range snap.Manifest.Retired {
		named[key.Import(c.r.Tenant, retired.ID)] = true
	}
	for record, size := range later {
		if _, ok := before[record]; ok || named[record] {
			want[record] = size
		}
	}
	return snap, want, nil
}

// mutables copies what is overwritten, as it is now, except for what was sent with the same ETag
// before: the tenant's rules, the counts of its queries, the states of its groups of pushed
// metrics, and its dashboards. It deletes from the destination what was sent and is gone in the
// source.
func (c *copying) mutables(ctx context.Context, sent map[string]string) error {
	keys := map[string]string{key.Rules(c.r.Tenant): "", key.Usage(c.r.Tenant): ""} // to the ETag
	for _, prefix := range []string{key.PushesPrefix(c.r.Tenant), key.DashboardsPrefix(c.r.Tenant)} {
		for obj, err := range c.from.List(ctx, prefix, "") {
			if err != nil {
				return err
			}
			keys[obj.Key] = obj.ETag
		}
	}
	for k, etag := range keys {
		if etag != "" && sent[k] == etag {
			continue
		}
		b, obj, err := objstore.ReadAll(ctx, c.from, k)
		if errors.Is(err, objstore.ErrNotFound) { // there are none, or it was deleted
			delete(keys, k)
			continue
		}
		if err != nil {
			return err
		}
		if sent[k] == obj.ETag {
			continue
		}
		if _, err := c.to.Put(ctx, k, bytes.NewReader(b), objstore.Condition{}); err != nil {
			return err
		}
		sent[k] = obj.ETag
		c.copied.Add(1)
		c.bytes.Add(int64(len(b)))
	}
	for k := range sent {
		if _, ok := keys[k]; ok {
			continue
		}
		if err := c.to.Delete(ctx, k); err != nil {
			return err
		}
		delete(sent, k)
	}
	return nil
}

// objects returns the size of each object of the snapshot, by key: live segments, and the files of
// blocks, those of splits that are not finished among them.
func (c *copying) objects(ctx context.Context, snap *catalog.Snapshot) (map[string]int64, error) {
	want := map[string]int64{}
	for _, s := range snap.Segments {
		want[s.String()] = s.Size
	}
	blocks := snap.Manifest.Blocks
	for _, sp := range snap.Manifest.Splits {
		blocks = append(blocks[:len(blocks):len(blocks)], sp.Done...)
	}
	for _, b := range blocks {
		if b.Bytes == 0 {
			continue // a slice of a split that has nothing
		}
		var bytes int64
		files := c.blocks[b.BlockID()]
		for _, size := range files {
			bytes += size
		}
		if bytes == b.Bytes { // the destination has it
			maps.Copy(want, files)
			continue
		}
		bytes = 0
		for obj, err := range c.from.List(ctx, b.Key(c.r.Tenant).Prefix(), "") {
			if err != nil {
				return nil, err
			}
			want[obj.Key] = obj.Size
			bytes += obj.Size
		}
		if bytes != b.Bytes { // some files are deleted already
			return nil, fmt.Errorf("block %s has %d of %d bytes: %w", b.BlockID(), bytes, b.Bytes, objstore.ErrNotFound)
		}
	}
	return want, nil
}

// records returns the sizes of the records of imports, by key.
func (c *copying) records(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	for obj, err := range c.from.List(ctx, key.ImportsPrefix(c.r.Tenant), "") {
		if err != nil {
			return nil, err
		}
		out[obj.Key] = obj.Size
	}
	return out, nil
}

// lane is the objects that are copied one after another: the live segments of a window in the order
// of their ranks, or a file of a block. A segment's rank is the time at which its store got it, so
// the copies must come in the same order: of two values of a sample the later one counts.
type lane struct {
	keys []string
	ids  []catalog.SegmentID // of the keys, if they are segments
}

// lanes splits the objects of a snapshot.
func lanes(snap *catalog.Snapshot, want map[string]int64) []lane {
	var all []lane
	segments := slices.Clone(snap.Segments)
	slices.SortFunc(segments, func(a, b catalog.SegmentRef) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), a.Rank.Compare(b.Rank))
	})
	seen := map[string]bool{}
	for i, s := range segments {
		if i == 0 || segments[i-1].Window != s.Window {
			all = append(all, lane{})
		}
		l := &all[len(all)-1]
		l.keys, l.ids = append(l.keys, s.String()), append(l.ids, s.SegmentID())
		seen[s.String()] = true
	}
	for k := range want {
		if !seen[k] {
			all = append(all, lane{keys: []string{k}})
		}
	}
	return all
}

// copyAll copies the objects that the destination has not.
func (c *copying) copyAll(ctx context.Context, want map[string]int64, all []lane) error {
	c.r.Present = 0
	for k, size := range want {
		if c.before[k] && c.has(k, size) {
			c.r.Present++
		}
	}
	err := telemetry.Each(ctx, copiers, all, func(ctx context.Context, _ int, l lane) error {
		var former bool // the object before was copied now
		for i, k := range l.keys {
			now := !c.has(k, want[k])
			if now {
				if err := copyObject(ctx, c.from, c.to, k, want[k]); err != nil {
					return err
				}
				c.copied.Add(1)
				c.bytes.Add(want[k])
			}
			if i > 0 && (former && !now || l.ids[i].ID.Compare(l.ids[i-1].ID) < 0) {
				var err error
				if now, err = c.follow(ctx, l.keys[i-1], k, want[k], former, now); err != nil {
					return err
				}
			}
			former = now
		}
		return nil
	})
	if errors.Is(err, objstore.ErrNotFound) {
		return errors.Join(err, c.look(context.WithoutCancel(ctx)))
	}
	return err
}

// has reports whether the destination had an object of this size when it was listed.
func (c *copying) has(k string, size int64) bool {
	obj, ok := c.there[k]
	return ok && obj.Size == size
}

// tick is how often follow looks whether the destination's clock has gone on.
const tick = 300 * time.Millisecond

// follow copies a segment again until the destination got it at a later time than the one before,
// and reports whether it was copied. Within a tick of its clock (a second on S3) identifiers
// decide, and theirs may be the other order. former and now: which of the two were copied since the
// destination was listed.
func (c *copying) follow(ctx context.Context, before, k string, size int64, former, now bool) (bool, error) {
	earlier, err := c.modified(ctx, before, former)
	if err != nil {
		return now, err
	}
	for {
		at, err := c.modified(ctx, k, now)
		if err != nil || at.After(earlier) {
			return now, err
		}
		if now {
			if err := smithytime.SleepWithContext(ctx, tick); err != nil {
				return now, err
			}
		}
		if err := copyObject(ctx, c.from, c.to, k, size); err != nil {
			return now, err
		}
		now = true
	}
}

// modified returns when the destination got an object. now: it was copied since it was listed.
func (c *copying) modified(ctx context.Context, k string, now bool) (time.Time, error) {
	if !now {
		return c.there[k].Modified, nil
	}
	for obj, err := range c.to.List(ctx, k, "") {
		if err != nil {
			return time.Time{}, err
		}
		if obj.Key == k {
			return obj.Modified, nil
		}
	}
	return time.Time{}, fmt.Errorf("the destination has lost %s", k)
}
