package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/parquetfile"
)

// Need is what is wanted of a Parquet object: some columns of some row groups. All lists are in the object's order.
type Need struct {
	Key       string
	Size      int64 // bytes of the object
	Codec     format.CompressionCodec
	Schema    []format.SchemaElement // the root, whose number of children is set here, and the wanted columns, which are flat and REQUIRED
	KeyValues []format.KeyValue
	Groups    []Group
}

// Group is a row group.
type Group struct {
	ID       int   // among those of the object
	FirstRow int64 // in the object
	Rows     int64
	Chunks   []Chunk // by column
}

// Chunk is a column chunk.
type Chunk struct {
	Span
	Min, Max []byte // statistics for the footer; nil = none
}

// Local is a local Parquet file that has what a Need asks for, and maybe more.
type Local struct {
	Path string
	At   []int64 // by group of the need: the row of the file that is the group's first
}

// Rows makes needs local, each as one file, which are valid until release. Errors: those of the store, and parquetfile.ErrFormat for chunks that
// are not what the need says.
func (c *Cache) Rows(ctx context.Context, needs []Need) (_ []Local, release func(), err error) {
	out := make([]Local, len(needs))
	pinned := make([]*file, len(needs))
	release = sync.OnceFunc(func() {
		for _, f := range pinned {
			if f != nil {
				c.release(f)
			}
		}
	})
	g, ctx := errgroup.WithContext(ctx)
	s := c.slots()
	for i := range needs {
		g.Go(func() error {
			f, err := c.acquire(ctx, needs[i].plan(), s)
			if err != nil {
				return err
			}
			pinned[i] = f
			out[i] = Local{Path: f.path, At: f.rowsOf(&needs[i])}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		release()
		return nil, nil, err
	}
	return out, release, nil
}

// Cost says how many requests it would take now to make needs local, and for how many bytes.
func (c *Cache) Cost(needs []Need) (gets int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range needs {
		p := needs[i].plan()
		if slices.ContainsFunc(c.objects[p.key], p.fits) {
			continue
		}
		missing := slices.DeleteFunc(p.begin().pieces, func(piece *piece) bool {
			_, from := c.lender(p.key, piece.span)
			return from != nil
		})
		for _, r := range requests(missing, c.settings.GapBytes, c.settings.RequestBytes) {
			gets, bytes = gets+1, bytes+r.Length
		}
	}
	return gets, bytes
}

func (n *Need) plan() plan {
	return plan{
		kind: kindChunks, key: n.Key,
		fits: func(f *file) bool { return f.whole || f.rows != nil && f.rows.covers(n) },
		begin: func() *file {
			f := &file{object: n.Size, rows: newRowView(n)}
			for _, g := range n.Groups {
				for _, ch := range g.Chunks {
					f.pieces = append(f.pieces, &piece{span: ch.Span})
				}
			}
			f.rows.end = layOut(f.pieces, int64(len(parquetfile.Magic)))
			return f
		},
	}
}

// rowView is what a row file has.
type rowView struct {
	need    *Need
	columns []string
	groups  map[int]int64 // by id: the first row in the file
	end     int64         // of the chunks in the file
}

func newRowView(n *Need) *rowView {
	v := &rowView{need: n, columns: n.columns(), groups: make(map[int]int64, len(n.Groups))}
	rows := int64(0)
	for _, g := range n.Groups {
		v.groups[g.ID] = rows
		rows += g.Rows
	}
	return v
}

func (n *Need) columns() []string {
	out := make([]string, 0, len(n.Schema))
	for _, e := range n.Schema[1:] {
		out = append(out, e.Name)
	}
	return out
}

// covers says that the file has what n asks for.
func (v *rowView) covers(n *Need) bool {
	for _, g := range n.Groups {
		if _, ok := v.groups[g.ID]; !ok {
			return false
		}
	}
	for _, e := range n.Schema[1:] {
		if !slices.Contains(v.columns, e.Name) {
			return false
		}
	}
	return true
}

// has says that v can stand in for o.
func (v *rowView) has(o *rowView) bool { return v.covers(o.need) }

// rowsOf returns where the groups of n begin in a file that fits.
func (f *file) rowsOf(n *Need) []int64 {
	at := make([]int64, len(n.Groups))
	for i, g := range n.Groups {
		at[i] = g.FirstRow
		if !f.whole {
			at[i] = f.rows.groups[g.ID]
		}
	}
	return at
}

// writeFooter ends a row file whose chunks are there. It reads their page headers, so that what the store gave is held against what was to
// be expected.
func (w *work) writeFooter() error {
	n := w.file.rows.need
	footer := parquetfile.Footer{Schema: n.Schema, Codec: n.Codec, KeyValues: n.KeyValues}
	at := int64(len(parquetfile.Magic))
	for _, g := range n.Groups {
		group := parquetfile.FooterGroup{Rows: g.Rows}
		for i, ch := range g.Chunks {
			span := Span{Offset: at, Length: ch.Length}
			pages, err := parquetfile.ReadPages(w.out, span)
			if err == nil && pages.Values != g.Rows {
				err = fmt.Errorf("%w: %d values, the row group has %d rows", parquetfile.ErrFormat, pages.Values, g.Rows)
			}
			if err != nil {
				return fmt.Errorf("column %s of row group %d: %w", n.Schema[1+i].Name, g.ID, err)
			}
			group.Chunks = append(group.Chunks, parquetfile.FooterChunk{Span: span, Pages: pages, Min: ch.Min, Max: ch.Max})
			at += ch.Length
		}
		footer.Groups = append(footer.Groups, group)
	}
	b, err := footer.Append(nil)
	if err != nil {
		return err
	}
	_, herr := w.out.WriteAt([]byte(parquetfile.Magic), 0)
	_, ferr := w.out.WriteAt(b, at)
	w.file.size = at + int64(len(b))
	return errors.Join(herr, ferr)
}
