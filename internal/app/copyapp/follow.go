package copyapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/instrument"
)

const (
	// PointKey is the object of a replica that has its recovery point. It is the only one that every
	// pass writes.
	PointKey = "promlake-follow.json"
	// ReplacedDelay is how long a replica keeps objects that are no longer live in it, as compaction
	// does by default.
	ReplacedDelay = 15 * time.Minute
)

// ErrInUse reports a destination of an earlier copy that another process has written to since.
var ErrInUse = errors.New("somebody else writes to the destination, so it is not overwritten")

// Follower keeps a replica of the tenants of a store, while others write, compact and delete in the
// store. A call of Pass takes it from one moment of the source to a later one. One call runs at a
// time.
type Follower struct {
	from, to objstore.Store
	tenants  []string // none: all
	calls    *prometheus.Registry
	replicas map[string]*replica // by tenant
	point    time.Time
}

// NewFollower returns a follower of the tenants of from; none: all. Only this one may write to what
// the store to has of the tenants.
func NewFollower(from, to objstore.Store, tenants []string) *Follower {
	calls := prometheus.NewRegistry()
	return &Follower{from: instrument.New(from, calls, nil), to: instrument.New(to, calls, nil), tenants: tenants, calls: calls, replicas: map[string]*replica{}}
}

// Pass is what a pass did.
type Pass struct {
	Tenants                          int
	Copied, Bytes, Deleted, Requests int64
	// RecoveryPoint: what the source's store had at this time of its clock is in the replica. It is
	// that of the last pass without an error; zero if there was none.
	RecoveryPoint time.Time
	Lag           time.Duration // from RecoveryPoint to the end of the pass
}

// Log writes a line about a pass, which failed with err if that is not nil. The recovery point and
// the lag are missing if there is none yet, or if the source did not answer.
func (p Pass) Log(ctx context.Context, logger *slog.Logger, err error) {
	fields := []any{"tenants", p.Tenants, "copied", p.Copied, "bytes", p.Bytes, "deleted", p.Deleted, "requests", p.Requests}
	if !p.RecoveryPoint.IsZero() {
		fields = append(fields, "recovery_point", p.RecoveryPoint.UTC().Format(time.RFC3339), "lag_seconds", int64(p.Lag.Seconds()))
	}
	if err != nil {
		logger.ErrorContext(ctx, "replication failed", append(fields, "error", err)...)
		return
	}
	logger.InfoContext(ctx, "replicated", fields...)
}

// pointVersion is that of PointKey's JSON.
const pointVersion = 1

type point struct {
	Version       int       `json:"version"`
	RecoveryPoint time.Time `json:"recovery_point"`
}

// Pass brings the replica to the present state of the source, tenant by tenant, in a random order,
// so that each gets its turn if there is not enough time for all. An error of one does not stop the
// others. It may end at any request, also because ctx ends: the replica then has each tenant as it
// was at the beginning of this pass or of an earlier one, and the next pass goes on with what is
// copied.
func (f *Follower) Pass(ctx context.Context) (p Pass, err error) {
	before := f.requests()
	start := time.Now()
	begin, err := f.from.Now(ctx)
	if err != nil {
		return p, err
	}
	defer func() {
		if p.Requests, p.RecoveryPoint = f.requests()-before, f.point; !f.point.IsZero() {
			p.Lag = begin.Sub(f.point) + time.Since(start)
		}
	}()
	if err := f.check(ctx); err != nil {
		return p, err
	}
	tenants := f.tenants
	if len(tenants) == 0 {
		if tenants, err = all(ctx, f.from); err != nil {
			return p, err
		}
	}
	tenants = slices.Clone(tenants)
	rand.Shuffle(len(tenants), func(i, j int) { tenants[i], tenants[j] = tenants[j], tenants[i] })
	var errs []error
	for _, t := range tenants {
		if f.replicas[t] == nil {
			f.replicas[t] = &replica{sent: map[string]string{}}
		}
		c := &copying{from: f.from, to: f.to, r: Result{Tenant: t}, replica: f.replicas[t]}
		if err := c.replica.pass(ctx, c, begin); err != nil {
			errs = append(errs, fmt.Errorf("follow tenant %s: %w", t, err))
			if ctx.Err() != nil {
				break
			}
		}
		p.Tenants, p.Copied, p.Bytes, p.Deleted = p.Tenants+1, p.Copied+c.copied.Load(), p.Bytes+c.bytes.Load(), p.Deleted+c.replica.deleted
	}
	if len(errs) > 0 {
		return p, errors.Join(errs...)
	}
	raw, err := json.Marshal(point{pointVersion, begin.UTC()})
	if err != nil {
		return p, err
	}
	if _, err := f.to.Put(ctx, PointKey, bytes.NewReader(append(raw, '\n')), objstore.Condition{}); err != nil {
		return p, err
	}
	f.point = begin
	return p, nil
}

// check refuses a replica that has the identity of a store: a server has written to it. The first
// time, it reads the recovery point.
func (f *Follower) check(ctx context.Context) error {
	_, _, err := objstore.ReadAll(ctx, f.to, key.Identity)
	if err == nil {
		return fmt.Errorf("it has %s: %w", key.Identity, ErrInUse)
	}
	if errors.Is(err, objstore.ErrNotFound) && f.point.IsZero() {
		var last point
		var raw []byte
		if raw, _, err = objstore.ReadAll(ctx, f.to, PointKey); err == nil {
			err = json.Unmarshal(raw, &last)
		}
		if err == nil && last.Version != pointVersion {
			err = fmt.Errorf("%s has version %d, this program reads %d", PointKey, last.Version, pointVersion)
		}
		f.point = last.RecoveryPoint
	}
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	return err
}

// requests counts the calls of both stores so far.
func (f *Follower) requests() (n int64) {
	families, err := f.calls.Gather()
	if err != nil {
		return 0
	}
	for _, family := range families {
		if family.GetName() == "promlake_objstore_requests_total" {
			for _, m := range family.GetMetric() {
				n += int64(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// replica is what a follower knows of a tenant in the destination.
type replica struct {
	sent    map[string]string // the ETags in the source of what is overwritten
	deleted int64             // objects, in this pass

	// of the last pass in which something had changed
	state   string    // of the source
	waiting bool      // objects wait for their deletion
	at      time.Time // when it began; zero: it failed, or there was none

	// while a pass changes something
	marked   time.Time        // when the destination got the mark
	manifest catalog.Manifest // of the destination
	etag     string
}

// state describes what a snapshot is of.
func state(snap *catalog.Snapshot) string { return fmt.Sprint(snap.Manifest.ID, snap.Segments) }

// pass brings the tenant to the present state of the source. If nothing has changed, it sends no
// request to the destination.
func (r *replica) pass(ctx context.Context, c *copying, now time.Time) error {
	r.deleted = 0
	snap, err := catalog.Take(ctx, c.from, c.r.Tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return err
	}
	if !r.at.IsZero() && r.state == state(&snap) && (!r.waiting || now.Before(r.at.Add(ReplacedDelay))) {
		return c.mutables(ctx, r.sent)
	}
	r.at = time.Time{}
	if err := c.run(ctx); err != nil {
		return err
	}
	r.at = now
	return nil
}

// read reads the manifest of the destination, whose objects are listed. It is decoded without
// ReadManifest, which corrects the times of the entries of the newest commit.
func (c *copying) read(ctx context.Context) (err error) {
	r := c.replica
	if r.marked, err = c.modified(ctx, c.markKey(), true); err != nil {
		return err
	}
	r.manifest, r.etag = catalog.Empty(), ""
	raw, obj, err := objstore.ReadAll(ctx, c.to, key.Manifest(c.r.Tenant))
	if err == nil {
		r.etag = obj.ETag
		r.manifest, err = catalog.Decode(raw)
	}
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("manifest of the destination: %w", err)
	}
	c.blocks = map[catalog.BlockID]map[string]int64{}
	for _, b := range r.manifest.Blocks {
		c.blocks[b.BlockID()] = map[string]int64{}
	}
	for k, obj := range c.there {
		if _, id, kind := parse(k); kind == isBlock && c.blocks[id] != nil {
			c.blocks[id][k] = obj.Size
		}
	}
	return nil
}

// update takes the tenant in the destination to a snapshot of the source, in one step:
//
//	manifest that counts the new segments as consumed ─▶ copy segments, files of blocks
//	─▶ what is overwritten ─▶ mark ─▶ manifest of the snapshot ─▶ records of imports ─▶ deletions
//
// The copied segments are live only with the manifest of the snapshot, all at once. What is not
// live stays for ReplacedDelay, and the manifest names it, so that it does not become live again.
func (c *copying) update(ctx context.Context, snap *catalog.Snapshot, want map[string]int64) error {
	r, m := c.replica, snap.Manifest
	if r.manifest.Generation > m.Generation || r.manifest.Generation == m.Generation && r.manifest.ID != m.ID {
		return fmt.Errorf("its manifest %s of generation %d does not precede the source's of generation %d: %w", r.manifest.ID, r.manifest.Generation, m.Generation, ErrInUse)
	}
	old, err := c.replaced(want, &m)
	if err != nil {
		return err
	}
	var live, fresh []catalog.SegmentID
	for _, s := range snap.Segments {
		if live = append(live, s.SegmentID()); !c.has(s.String(), s.Size) {
			fresh = append(fresh, s.SegmentID())
		}
	}
	if len(fresh) > 0 {
		if _, err := c.commit(ctx, r.manifest, nil, catalog.Sources{Segments: fresh}); err != nil {
			return err
		}
	}
	// A record without its block would keep the samples from being imported.
	records := map[string]int64{}
	for k, size := range want {
		if strings.HasPrefix(k, key.ImportsPrefix(c.r.Tenant)) {
			records[k] = size
			delete(want, k)
		}
	}
	if err := c.copyAll(ctx, want, lanes(snap, want)); err != nil {
		return err
	}
	if err := c.mutables(ctx, r.sent); err != nil {
		return err
	}
	// Segments that are later than the mark and in no manifest are those of somebody else.
	if _, err := c.to.Put(ctx, c.markKey(), strings.NewReader(markText), objstore.Condition{}); err != nil {
		return err
	}
	former := r.manifest
	// From here on the replica answers as the source at the moment of the snapshot.
	now, err := c.commit(ctx, m, live, old)
	if err != nil {
		return err
	}
	if err := c.copyAll(ctx, records, lanes(&catalog.Snapshot{}, records)); err != nil {
		return err
	}
	var due []string
	for k := range c.there {
		_, wanted := want[k]
		if at, ok := superseded(&former, k); ok && !wanted && at <= now.Add(-ReplacedDelay).UnixMilli() {
			due = append(due, k)
		}
	}
	slices.Sort(due)
	n, err := objstore.DeleteAll(ctx, c.to, due)
	r.deleted += int64(n)
	r.state, r.waiting = state(snap), len(old.Segments)+len(old.Blocks) > 0
	return err
}

// commit replaces the manifest of the destination, unless it is equal, by m with the objects that
// the destination has besides (catalog.Manifest.Replica). It returns the destination's time before.
func (c *copying) commit(ctx context.Context, m catalog.Manifest, live []catalog.SegmentID, hidden catalog.Sources) (now time.Time, err error) {
	r := c.replica
	if now, err = c.to.Now(ctx); err != nil {
		return now, err
	}
	m = m.Replica(r.manifest, now, ReplacedDelay, live, hidden)
	raw, err := catalog.Encode(m)
	if err != nil {
		return now, err
	}
	if former, err := catalog.Encode(r.manifest); err != nil || bytes.Equal(raw, former) {
		return now, err
	}
	etag, err := c.to.Put(ctx, key.Manifest(c.r.Tenant), bytes.NewReader(raw), objstore.Condition{IfAbsent: r.etag == "", IfMatch: r.etag})
	if errors.Is(err, objstore.ErrPrecondition) {
		return now, fmt.Errorf("its manifest was changed: %w", ErrInUse)
	}
	if err == nil {
		r.manifest, r.etag = m, etag
	}
	return now, err
}

// replaced returns the segments and blocks of the destination that the snapshot has not. Of what is
// overwritten, it notes what a former follower has sent.
func (c *copying) replaced(want map[string]int64, m *catalog.Manifest) (old catalog.Sources, err error) {
	r, tenant := c.replica, c.r.Tenant
	blocks := map[catalog.BlockID]bool{}
	for k, obj := range c.there {
		if _, ok := want[k]; ok {
			continue
		}
		_, known := superseded(&r.manifest, k)
		if _, ok := superseded(m, k); ok {
			known = true
		}
		switch seg, id, kind := parse(k); {
		case kind == isSegment && !known && obj.Modified.After(r.marked):
			return old, fmt.Errorf("it has %s: %w", k, ErrInUse)
		case kind == isSegment:
			old.Segments = append(old.Segments, seg)
		case kind == isBlock:
			blocks[id] = true
		case k == key.Rules(tenant), k == key.Usage(tenant), strings.HasPrefix(k, key.PushesPrefix(tenant)), strings.HasPrefix(k, key.DashboardsPrefix(tenant)):
			if _, ok := r.sent[k]; !ok {
				r.sent[k] = ""
			}
		}
	}
	old.Blocks = slices.Collect(maps.Keys(blocks))
	return old, nil
}

const (
	isSegment = iota + 1
	isBlock
)

// parse returns the identity of a segment, or of the block of a file.
func parse(k string) (seg catalog.SegmentID, block catalog.BlockID, kind int) {
	if s, err := key.ParseSegment(k); err == nil {
		return catalog.SegmentIDOf(s), block, isSegment
	}
	if b, _, err := key.ParseBlockFile(k); err == nil {
		return seg, catalog.BlockID{Level: b.Level, Window: b.Window, ID: b.ID}, isBlock
	}
	return seg, block, 0
}

// superseded reports since when (ms) a manifest counts an object as consumed or retired.
func superseded(m *catalog.Manifest, k string) (at int64, ok bool) {
	switch seg, block, kind := parse(k); kind {
	case isSegment:
		return m.ConsumedAt(seg)
	case isBlock:
		return m.RetiredAt(block)
	}
	return 0, false
}
