package promblock

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/promlake/promlake/internal/format/series"
)

// Spool is a temporary file without a name, with series and their chunks, in any order. First all series are added,
// by one goroutine; then Scan may be called concurrently. Nothing of a series stays in memory.
//
//	series  = labels chunks
//	labels  = count *(length name length value)   ; numbers are unsigned varints
//	chunks  = count *(min-time max-time encoding length data)   ; times in ms, signed varints
type Spool struct {
	file *os.File
	w    *bufio.Writer
	buf  []byte
	pool chunkenc.Pool
	size int64
}

// NewSpool makes a file in a directory; "" is the system's for temporary files.
func NewSpool(dir string) (*Spool, error) {
	f, err := os.CreateTemp(dir, "promlake-import-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil { // so that no crash leaves it behind
		return nil, errors.Join(fmt.Errorf("remove the name of a temporary file: %w", err), f.Close())
	}
	return &Spool{file: f, w: bufio.NewWriterSize(f, 1<<18), pool: chunkenc.NewPool()}, nil
}

// Add adds chunks of a series, which may be added in several parts. Labels are by name.
func (s *Spool) Add(lset labels.Labels, all []chunks.Meta) error {
	b := binary.AppendUvarint(s.buf[:0], uint64(lset.Len()))
	lset.Range(func(l labels.Label) {
		b = append(binary.AppendUvarint(b, uint64(len(l.Name))), l.Name...)
		b = append(binary.AppendUvarint(b, uint64(len(l.Value))), l.Value...)
	})
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, m := range all {
		b = binary.AppendVarint(binary.AppendVarint(b, m.MinTime), m.MaxTime)
		b = append(b, byte(m.Chunk.Encoding()))
		data := m.Chunk.Bytes()
		b = append(binary.AppendUvarint(b, uint64(len(data))), data...)
	}
	s.buf, s.size = b, s.size+int64(len(b))
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	return nil
}

// End ends the adding of series.
func (s *Spool) End() error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	s.w, s.buf = nil, nil
	return nil
}

// Close removes the file. No method may run.
func (s *Spool) Close() error { return s.file.Close() }

// Scan is Block.Scan.
func (s *Spool) Scan(ctx context.Context, from, to int64, keep Keep) (*Rows, error) {
	r := &spoolReader{r: bufio.NewReaderSize(io.NewSectionReader(s.file, 0, s.size), 1<<18)}
	rows := &Rows{source: s, from: from, to: to}
	for n := 0; r.at < s.size; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("read temporary file: %w", context.Cause(ctx))
		}
		at := r.at
		lset := r.labels()
		within := slices.DeleteFunc(r.chunks(), func(m chunks.Meta) bool { return m.MaxTime < from || m.MinTime >= to })
		if r.err != nil {
			return nil, fmt.Errorf("read temporary file: %w", r.err)
		}
		if len(within) == 0 {
			continue
		}
		for i := range within {
			within[i].MinTime = math.MinInt64 // a server's word: Read looks at the times of all samples
		}
		ref, ok, err := keep(lset, rowBytes+int64(len(within))*placeBytes)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		rows.add(ref, storage.SeriesRef(at), within, nil)
	}
	rows.byRef = nil
	return rows, nil
}

// load implements source. The reference of a chunk is where its encoding is.
func (s *Spool) load(m chunks.Meta) (chunkenc.Chunk, error) {
	r := &spoolReader{r: bufio.NewReaderSize(io.NewSectionReader(s.file, int64(m.Ref), s.size-int64(m.Ref)), 512)}
	encoding := r.byte()
	data := make([]byte, r.length())
	r.read(data)
	if r.err != nil {
		return nil, r.err
	}
	return s.pool.Get(chunkenc.Encoding(encoding), data)
}

// release implements source.
func (s *Spool) release(c chunkenc.Chunk) error { return s.pool.Put(c) }

// corrupt implements source.
func (s *Spool) corrupt(at storage.SeriesRef, _ chunks.ChunkRef, err error) (*CorruptError, bool) {
	r := &spoolReader{r: bufio.NewReader(io.NewSectionReader(s.file, int64(at), s.size-int64(at)))}
	c := &CorruptError{Err: err}
	var b labels.ScratchBuilder
	for _, l := range r.labels() {
		b.Add(l.Name, l.Value)
	}
	if r.err == nil {
		b.Sort()
		c.Series = b.Labels()
	}
	return c, false
}

// spoolReader reads what Add wrote. After an error it returns zeros.
type spoolReader struct {
	r     *bufio.Reader
	at    int64
	err   error
	lset  []series.Label
	metas []chunks.Meta
}

// ReadByte implements io.ByteReader.
func (r *spoolReader) ReadByte() (byte, error) {
	if r.err != nil {
		return 0, r.err
	}
	b, err := r.r.ReadByte()
	r.at, r.err = r.at+1, err
	return b, err
}

func (r *spoolReader) byte() byte {
	b, _ := r.ReadByte() // r.err has it
	return b
}

func (r *spoolReader) length() int {
	n, err := binary.ReadUvarint(r)
	r.err = cmp.Or(r.err, err)
	return int(n)
}

func (r *spoolReader) time() int64 {
	t, err := binary.ReadVarint(r)
	r.err = cmp.Or(r.err, err)
	return t
}

func (r *spoolReader) read(b []byte) {
	if r.err == nil {
		_, r.err = io.ReadFull(r.r, b)
		r.at += int64(len(b))
	}
}

func (r *spoolReader) text() string {
	b := make([]byte, r.length())
	r.read(b)
	return string(b)
}

// labels reads the labels of a series, by name and without empty values.
func (r *spoolReader) labels() []series.Label {
	r.lset = r.lset[:0]
	for n := r.length(); n > 0 && r.err == nil; n-- {
		if l := (series.Label{Name: r.text(), Value: r.text()}); l.Value != "" {
			r.lset = append(r.lset, l)
		}
	}
	return r.lset
}

// chunks reads where the chunks of a series are.
func (r *spoolReader) chunks() []chunks.Meta {
	r.metas = r.metas[:0]
	for n := r.length(); n > 0 && r.err == nil; n-- {
		m := chunks.Meta{MinTime: r.time(), MaxTime: r.time(), Ref: chunks.ChunkRef(r.at)}
		r.byte()
		skip := r.length()
		if r.err == nil {
			_, r.err = r.r.Discard(skip)
			r.at += int64(skip)
		}
		r.metas = append(r.metas, m)
	}
	return r.metas
}
