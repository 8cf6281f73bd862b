package publish

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// generationProperty is where a snapshot has the generation of its manifest.
const generationProperty = "promlake.generation"

// manifest is a day's manifest that is written by this publication.
type manifest struct {
	name  string
	files []iceberg.DataFile
}

// update publishes the blocks of days, unless the newest version has exactly these.
func (v *version) update(ctx context.Context, days []day) (TableReport, error) {
	before, err := v.listed(ctx)
	if err != nil {
		return TableReport{}, err
	}
	var kept []iceberg.ManifestFile
	var fresh []day
	for _, d := range days {
		if i := slices.IndexFunc(before, func(m iceberg.ManifestFile) bool { return strings.HasPrefix(base(m.Path), d.stem()) }); i >= 0 {
			kept = append(kept, before[i])
			v.old += leftOut(base(before[i].Path), d.stem())
		} else {
			fresh = append(fresh, d)
		}
	}
	added, metas, err := v.manifests(ctx, fresh)
	if err != nil {
		return TableReport{}, err
	}
	if len(added) == 0 && len(kept) == len(before) { // also: there is no table yet, and nothing to publish
		return v.report(kept, false), v.raise(ctx)
	}
	next, err := v.next(metas)
	if err != nil {
		return TableReport{}, err
	}
	for i := range added {
		b, err := iceberg.EncodeManifest(next, added[i].files)
		if err != nil {
			return TableReport{}, err
		}
		k := v.prefix() + added[i].name
		if err := v.put(ctx, k, b); err != nil {
			return TableReport{}, fmt.Errorf("put manifest: %w", err)
		}
		kept = append(kept, iceberg.Listed(v.set.Location(k), len(b), next.Snapshot(), added[i].files))
	}
	s := next.Snapshot()
	files, rows := total(kept)
	s.Summary = map[string]string{
		"operation": "append", "total-data-files": strconv.FormatInt(files, 10), "total-records": strconv.FormatInt(rows, 10),
		generationProperty: strconv.FormatUint(v.generation, 10),
	}
	for _, b := range before {
		if !slices.ContainsFunc(kept, func(a iceberg.ManifestFile) bool { return a.Path == b.Path }) {
			s.Summary["operation"] = "overwrite"
		}
	}
	b, err := iceberg.EncodeList(s, kept)
	if err != nil {
		return TableReport{}, err
	}
	if err := v.put(ctx, v.prefix()+base(s.ManifestList), b); err != nil {
		return TableReport{}, fmt.Errorf("put manifest list: %w", err)
	}
	if err := v.commit(ctx, next); err != nil {
		return TableReport{}, err
	}
	if err := v.raise(ctx); err != nil {
		return TableReport{}, err
	}
	return v.report(kept, true), v.clean(ctx, kept)
}

// listed returns the manifests of the newest version. Those of a table at another location name
// files that are not there: the store was moved.
func (v *version) listed(ctx context.Context) ([]iceberg.ManifestFile, error) {
	if v.data == nil || v.data.Snapshot() == nil {
		return nil, nil
	}
	s := v.data.Snapshot()
	if g, err := strconv.ParseUint(s.Summary[generationProperty], 10, 64); err != nil || g > v.generation {
		return nil, fmt.Errorf("%w: the table has generation %q, the manifest %d: remove all objects below %s to publish anew", ErrAhead, s.Summary[generationProperty], v.generation, key.IcebergPrefix(v.tenant, v.table.name))
	}
	if v.data.Location != v.location() {
		return nil, nil
	}
	return v.readList(ctx, s)
}

func (v *version) readList(ctx context.Context, s *iceberg.Snapshot) ([]iceberg.ManifestFile, error) {
	b, _, err := objstore.ReadAll(ctx, v.store, v.prefix()+base(s.ManifestList))
	if err != nil {
		return nil, fmt.Errorf("read manifest list: %w", err)
	}
	return iceberg.DecodeList(b)
}

// base is the last element of a URI.
func base(uri string) string { return uri[strings.LastIndexByte(uri, '/')+1:] }

func (v *version) location() string {
	return v.set.Location(strings.TrimSuffix(key.IcebergPrefix(v.tenant, v.table.name), "/"))
}

// manifests returns the manifests of days, which are yet to be written, and the blocks in them.
func (v *version) manifests(ctx context.Context, days []day) (out []manifest, metas []block.Meta, err error) {
	for _, d := range days {
		id, err := v.newID()
		if err != nil {
			return nil, nil, err
		}
		var m manifest
		old := 0
		for _, b := range d.blocks {
			meta, err := v.meta(ctx, b)
			if err != nil {
				return nil, nil, err
			}
			if !meta.Aliased() {
				old++
				continue
			}
			metas = append(metas, *meta)
			m.files = append(m.files, v.table.dataFiles(meta, b.Key(v.tenant).File, v.set.Location, d.start)...)
		}
		m.name = manifestName(d.stem(), old, id)
		v.old += old
		out = append(out, m)
	}
	return out, metas, nil
}

func total(manifests []iceberg.ManifestFile) (files, rows int64) {
	for _, m := range manifests {
		files, rows = files+int64(m.AddedFiles), rows+m.AddedRows
	}
	return files, rows
}

func (v *version) report(manifests []iceberg.ManifestFile, changed bool) TableReport {
	r := TableReport{Name: v.table.name, Version: v.n, Changed: changed}
	if v.n > 0 {
		r.Metadata = v.set.Location(v.versionKey(v.n))
	}
	r.Files, r.Rows = total(manifests)
	return r
}

func (v *version) newID() (ulid.ULID, error) {
	var id ulid.ULID
	if err := id.SetTime(uint64(max(0, v.now))); err != nil {
		return id, fmt.Errorf("make identifier: %w", err)
	}
	if _, err := io.ReadFull(v.set.Entropy, id[6:]); err != nil {
		return id, fmt.Errorf("make identifier: %w", err)
	}
	return id, nil
}
