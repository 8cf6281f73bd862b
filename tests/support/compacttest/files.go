package compacttest

import (
	"bytes"
	"fmt"
	"io"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Files are the files of a block in memory. They implement block.Files and block.Source.
type Files map[string]*bytes.Buffer

// Create implements block.Files.
func (f Files) Create(name string) (io.WriteCloser, error) {
	f[name] = &bytes.Buffer{}
	return nopCloser{f[name]}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Open implements block.Source.
func (f Files) Open(name string) (io.ReaderAt, int64, error) {
	b, ok := f[name]
	if !ok {
		return nil, 0, fmt.Errorf("open %s: %w", name, objstore.ErrNotFound)
	}
	return bytes.NewReader(b.Bytes()), int64(b.Len()), nil
}

// Block writes rows in block order as a block.
func Block(rows []segment.Row, o block.Options) (Files, error) {
	t := series.NewTable(3)
	refs := make([]series.Ref, len(rows))
	for i := range rows {
		var err error
		if refs[i], err = t.Intern(pairs(rows[i].Labels)); err != nil {
			return nil, err
		}
	}
	view, files := t.View(), Files{}
	w, err := block.NewWriter(files, &view, o)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if err := w.Append(refs[i], samples(&rows[i], o.HasST)); err != nil {
			return nil, err
		}
	}
	_, err = w.Close(block.Header{Level: o.Level})
	return files, err
}

func samples(r *segment.Row, st bool) *block.Samples {
	s := &block.Samples{Hists: r.Hists, Exemplars: r.Exemplars}
	for _, f := range r.Floats {
		s.TS, s.V = append(s.TS, f.T), append(s.V, f.V)
		if st {
			s.ST = append(s.ST, f.ST)
		}
	}
	return s
}
