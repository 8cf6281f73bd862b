package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	hintFile      = "version-hint.text"
	versionSuffix = ".metadata.json"
	maxHint       = 20 // bytes of a hint
)

// version is the newest metadata of a table, as it was read.
type version struct {
	*state
	table *table
	n     int64             // 0: there is none
	data  *iceberg.Metadata // nil: there is none
	hint  int64             // what the hint says; 0: there is none
	etag  string            // of the hint
	old   int               // blocks that an earlier version wrote
}

func (v *version) prefix() string {
	return key.IcebergPrefix(v.tenant, v.table.name) + "metadata/"
}

func (v *version) versionKey(n int64) string {
	return v.prefix() + "v" + strconv.FormatInt(n, 10) + versionSuffix
}

// parseVersion is the inverse of versionKey, for the last element of a key.
func parseVersion(name string) (int64, bool) {
	s, ok := strings.CutSuffix(name, versionSuffix)
	if !ok || !strings.HasPrefix(s, "v") {
		return 0, false
	}
	n, err := strconv.ParseInt(s[1:], 10, 64)
	return n, err == nil && n > 0
}

// openTable finds the newest version of a table: that of the hint, or a later one whose publisher
// died before it raised the hint.
func (s *state) openTable(ctx context.Context, t *table) (*version, error) {
	v := &version{state: s, table: t}
	b, o, err := objstore.ReadAll(ctx, s.store, v.prefix()+hintFile)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", hintFile, err)
	default:
		v.etag = o.ETag
		if v.hint, err = strconv.ParseInt(strings.TrimSpace(string(b[:min(len(b), maxHint)])), 10, 64); err != nil || v.hint <= 0 {
			return nil, fmt.Errorf("%s%s is %q, want the number of a version: remove it, or all objects below %s, to publish anew", v.prefix(), hintFile, b[:min(len(b), maxHint)], key.IcebergPrefix(v.tenant, t.name))
		}
	}
	for n := max(1, v.hint); ; n++ {
		b, _, err := objstore.ReadAll(ctx, s.store, v.versionKey(n))
		if errors.Is(err, objstore.ErrNotFound) {
			if n == v.hint {
				return nil, fmt.Errorf("%s names version %d, whose object is gone: %w: remove all objects below %s to publish anew", hintFile, n, errRaced, key.IcebergPrefix(v.tenant, t.name))
			}
			return v, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read version %d: %w", n, err)
		}
		if v.data, err = iceberg.DecodeMetadata(b); err != nil {
			return nil, fmt.Errorf("read %s: %w: remove all objects below %s to publish anew", v.versionKey(n), err, key.IcebergPrefix(v.tenant, t.name))
		}
		v.n = n
	}
}

// commit makes m the next version. It is the commit point. Errors: errRaced.
func (v *version) commit(ctx context.Context, m *iceberg.Metadata) error {
	b, err := m.Encode()
	if err != nil {
		return err
	}
	err = v.put(ctx, v.versionKey(v.n+1), b)
	if errors.Is(err, objstore.ErrPrecondition) {
		return fmt.Errorf("version %d: %w", v.n+1, errRaced)
	}
	if err != nil {
		return fmt.Errorf("put version %d: %w", v.n+1, err)
	}
	v.n, v.data = v.n+1, m
	return nil
}

// raise brings the hint to the newest version. If another publisher raised it meanwhile, the hint
// is that of a version which is as new, or its next publication corrects it.
func (v *version) raise(ctx context.Context) error {
	if v.hint >= v.n {
		return nil
	}
	cond := objstore.Condition{IfMatch: v.etag, IfAbsent: v.etag == ""}
	_, err := v.store.Put(ctx, v.prefix()+hintFile, strings.NewReader(strconv.FormatInt(v.n, 10)), cond)
	if errors.Is(err, objstore.ErrPrecondition) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", hintFile, err)
	}
	v.hint = v.n
	return nil
}

// put writes an object of the table that does not exist.
func (v *version) put(ctx context.Context, k string, b []byte) error {
	_, err := v.store.Put(ctx, k, bytes.NewReader(b), objstore.Condition{IfAbsent: true})
	return err
}
