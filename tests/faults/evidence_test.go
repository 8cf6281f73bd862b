package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// note keeps what came of a request that may change the store.
func (w *world) note(server string, r *http.Request, f fault) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	line := fmt.Sprintf("%s %s %s %s %s", time.Now().UTC().Format("15:04:05.000"), server, r.Method, r.URL.Path, f)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, line)
}

// evidence describes every object that holds the point of a mismatch, live or not, with the
// requests that made it, and the end of the servers' logs.
func (w *world) evidence(failure error) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var m *mismatch
	var out strings.Builder
	if errors.As(failure, &m) {
		if err := w.holders(ctx, m, &out); err != nil {
			fmt.Fprintf(&out, "the store cannot be read: %v\n", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&out, "the servers' logs:\n%s", strings.Join(w.log, ""))
	return out.String()
}

func (w *world) holders(ctx context.Context, m *mismatch, out *strings.Builder) error {
	snap, err := catalog.Take(ctx, w.direct, tenant.Default, m.ts, m.ts)
	if err != nil {
		return err
	}
	for _, t := range snap.Manifest.Tombstones {
		fmt.Fprintf(out, "tombstone %s %v [%d, %d]\n", t.ID, t.Matchers, t.MinT, t.MaxT)
	}
	live := map[string]string{}
	for _, s := range snap.Segments {
		live[s.String()] = fmt.Sprintf("live, rank %s, deletes through %s", s.Rank, s.DeletesThrough)
	}
	for _, b := range snap.Blocks {
		live[b.Key(tenant.Default).Prefix()] = fmt.Sprintf("live, rank %s, deletes through %s", b.Rank, b.DeletesThrough)
	}
	for obj, err := range w.direct.List(ctx, "", "") {
		if err != nil {
			return err
		}
		name, rows, err := w.rows(ctx, obj)
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", obj.Key, err)
		}
		for _, r := range rows {
			if r.Labels.Get("s") != m.series {
				continue
			}
			var held []any
			for _, f := range r.Floats {
				if f.T == m.ts {
					held = append(held, f.V)
				}
			}
			for _, h := range r.Hists {
				if h.T == m.ts {
					held = append(held, h.H)
				}
			}
			if len(held) > 0 {
				fmt.Fprintf(out, "%s, modified %s: %v; %s\n", name, obj.Modified.UTC().Format("15:04:05.000"), held, live[name])
				w.made(name, out)
			}
		}
	}
	return nil
}

// rows reads a segment, or a block for the first of its files.
func (w *world) rows(ctx context.Context, obj objstore.Object) (name string, rows []segment.Row, err error) {
	if _, err := key.ParseSegment(obj.Key); err == nil {
		data, err := read(ctx, w.direct, obj)
		if err != nil {
			return obj.Key, nil, err
		}
		rows, err = segmenttest.Rows(data)
		return obj.Key, rows, err
	}
	b, file, err := key.ParseBlockFile(obj.Key)
	if err != nil || file != "meta.json" {
		return obj.Key, nil, nil
	}
	rows, _, err = compacttest.ReadBlock(blockio.NewReader(ctx, w.direct, b, 1<<20))
	return b.Prefix(), rows, err
}

// made prints the requests for an object.
func (w *world) made(name string, out *strings.Builder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if strings.Contains(r, name) {
			fmt.Fprintf(out, "    %s\n", r)
		}
	}
}

func read(ctx context.Context, store objstore.Store, obj objstore.Object) ([]byte, error) {
	r, _, err := store.Get(ctx, obj.Key, 0, -1)
	if err != nil {
		return nil, err
	}
	data := make([]byte, obj.Size)
	_, err = io.ReadFull(r, data)
	return data, errors.Join(err, r.Close())
}
