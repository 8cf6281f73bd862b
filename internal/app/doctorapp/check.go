package doctorapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// ahead is how many bytes of a remote file are fetched at once.
const ahead = 4 << 20

// source is a live object.
type source struct {
	segment *catalog.SegmentRef // or
	block   *catalog.Block
}

// check examines an object, and once more if it seems damaged: a fault of the way to it is none of
// the object.
func (d *doctor) check(ctx context.Context, src source) (n int64, found *Damaged, err error) {
	n, found, err = d.once(ctx, src)
	if err == nil && found != nil {
		var again int64
		again, found, err = d.once(ctx, src)
		n += again
	}
	return n, found, err
}

// once reads an object and returns how many bytes it read, and what is wrong with it. An object
// that is gone and no longer live was replaced meanwhile, and is not damaged.
func (d *doctor) once(ctx context.Context, src source) (n int64, found *Damaged, err error) {
	out := &Damaged{source: src}
	if src.segment != nil {
		n, err = d.segment(ctx, src.segment, out)
	} else {
		n, err = d.block(ctx, src.block, out)
	}
	switch {
	case err == nil:
		return n, nil, nil
	case errors.Is(err, objstore.ErrNotFound):
		live, lerr := d.live(ctx, src)
		if lerr != nil || !live {
			return n, nil, lerr
		}
	case errors.Is(err, checksum.ErrUnknownVersion), errors.Is(err, errNotUnderstood):
		out.NotUnderstood = true
	case !isDamage(err):
		return n, nil, err
	}
	out.Error = err.Error()
	return n, out, nil
}

// errNotUnderstood reports an object with nothing but sound bytes, as their checksums prove.
var errNotUnderstood = errors.New("every byte matches its checksum, but this program does not understand them; upgrade promlake")

// isDamage reports whether an error means wrong bytes, and not a store that did not answer.
func isDamage(err error) bool {
	kinds := []error{checksum.ErrDamaged, parquetfile.ErrFormat, segment.ErrFormat, block.ErrFormat}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

func (d *doctor) segment(ctx context.Context, ref *catalog.SegmentRef, out *Damaged) (n int64, err error) {
	out.Object = ref.String()
	out.MinTime, out.MaxTime = moment(int64(ref.Window)), moment(ref.Window.End()-1)
	body, _, err := objstore.ReadAll(ctx, d.store, ref.String())
	n = int64(len(body))
	if err != nil {
		return n, err
	}
	in := bytes.NewReader(body)
	defer func() {
		if isDamage(err) {
			if sealed, verr := parquetfile.Verify(in, n); sealed && verr == nil {
				err = fmt.Errorf("%w: %w", errNotUnderstood, err)
			}
		}
	}()
	info, err := segment.ReadInfo(in, n)
	if err != nil {
		return n, err
	}
	out.Series, out.Samples = info.Rows, info.Samples
	if info.MinT <= info.MaxT {
		out.MinTime, out.MaxTime = moment(info.MinT), moment(info.MaxT)
	}
	if !d.settings.Verify {
		return n, nil
	}
	if _, err := parquetfile.Verify(in, n); err != nil {
		return n, err
	}
	_, err = segment.Decode(body, series.NewTable(0), nil) // what has no checksums must still make sense
	return n, err
}

func (d *doctor) block(ctx context.Context, b *catalog.Block, out *Damaged) (n int64, err error) {
	k := b.Key(d.tenant)
	out.Object, out.Series, out.Samples = k.Prefix(), b.Series, b.Samples
	out.MinTime, out.MaxTime = moment(b.MinT), moment(b.MaxT)
	if b.MaxT < b.MinT { // metadata alone
		out.MinTime, out.MaxTime = moment(int64(b.Window)), moment(b.Level.End(b.Window)-1)
	}
	files := blockio.NewReader(ctx, d.store, k, ahead)
	defer func() {
		n = files.Fetched()
		err = errors.Join(err, files.Close())
	}()
	r, err := block.Open(files)
	if isDamage(err) {
		if b, _, rerr := objstore.ReadAll(ctx, d.store, k.File(block.MetaFile)); rerr == nil {
			if sealed, verr := checksum.Verify(b); sealed && verr == nil {
				err = fmt.Errorf("%w: %w", errNotUnderstood, err)
			}
		}
	}
	if err != nil || !d.settings.Verify {
		return 0, err
	}
	all := true // files are sealed
	for _, f := range r.Meta().Files {
		in, size, err := files.Open(f.Name)
		if err != nil {
			return 0, err
		}
		if size != f.Bytes {
			return 0, fmt.Errorf("%w: %s has %d bytes, meta.json records %d", block.ErrFormat, f.Name, size, f.Bytes)
		}
		sealed, err := parquetfile.Verify(in, size)
		if err != nil {
			return 0, fmt.Errorf("verify %s: %w", f.Name, err)
		}
		all = all && sealed
	}
	if _, err = r.Series(series.NewTable(0), nil); all && isDamage(err) {
		err = fmt.Errorf("%w: %w", errNotUnderstood, err)
	}
	return 0, err
}

func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// live reports whether a source is live at present.
func (d *doctor) live(ctx context.Context, src source) (bool, error) {
	m, _, err := catalog.ReadManifest(ctx, d.store, d.tenant)
	if err != nil {
		return false, fmt.Errorf("read manifest again: %w", err)
	}
	if src.segment != nil {
		return !slices.ContainsFunc(m.Consumed, func(c catalog.Consumed) bool { return c.SegmentID == src.segment.SegmentID() }), nil
	}
	return slices.ContainsFunc(m.Blocks, func(b catalog.Block) bool { return b.BlockID() == src.block.BlockID() }), nil
}

// quarantine copies the object's bytes, and then ends its life in the manifest. The originals
// become garbage, which the compactor deletes after its deletion delay. Stopped in between, the
// object still counts, and running again is safe.
func (d *doctor) quarantine(ctx context.Context, f *Damaged) error {
	// Copy a segment, or all objects under a block's prefix.
	for obj, err := range d.store.List(ctx, f.Object, "") {
		if err != nil {
			return fmt.Errorf("list %s: %w", f.Object, err)
		}
		body, _, err := objstore.ReadAll(ctx, d.store, obj.Key)
		if err != nil {
			return err
		}
		_, err = d.store.Put(ctx, key.Quarantine+obj.Key, bytes.NewReader(body), objstore.Condition{IfAbsent: true})
		if err != nil && !errors.Is(err, objstore.ErrPrecondition) { // an earlier attempt has copied it
			return fmt.Errorf("keep %s: %w", obj.Key, err)
		}
	}
	var gone catalog.Sources
	if s := f.source.segment; s != nil {
		gone.Segments = []catalog.SegmentID{s.SegmentID()}
	} else {
		gone.Blocks = []catalog.BlockID{f.source.block.BlockID()}
	}
	_, err := catalog.Commit(ctx, d.store, d.tenant, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) { return m.Expire(now, gone) })
	if err != nil {
		return err
	}
	f.Quarantined = true
	return nil
}
