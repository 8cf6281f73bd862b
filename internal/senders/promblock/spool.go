package promblock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/encoding"
	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/internal/format/series"
)

// Spool is a temporary file without a name, with series and their chunks, in any order. First all
// series are added, by one goroutine; then Scan may be called concurrently. Nothing of a series
// stays in the memory of the process.
//
//	series  = labels chunks
//	labels  = count *(name value)   ; numbers are unsigned varints, texts follow their lengths
//	chunks  = count *(min-time max-time encoding data)   ; times in ms, signed varints
type Spool struct {
	file *os.File
	w    *bufio.Writer
	buf  encoding.Encbuf
	pool chunkenc.Pool
	text []byte // of the file, once all series are added
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
	s.buf.Reset()
	s.buf.PutUvarint(lset.Len())
	lset.Range(func(l labels.Label) {
		s.buf.PutUvarintStr(l.Name)
		s.buf.PutUvarintStr(l.Value)
	})
	s.buf.PutUvarint(len(all))
	for _, m := range all {
		s.buf.PutVarint64(m.MinTime)
		s.buf.PutVarint64(m.MaxTime)
		s.buf.PutByte(byte(m.Chunk.Encoding()))
		s.buf.PutUvarintBytes(m.Chunk.Bytes())
	}
	if _, err := s.w.Write(s.buf.Get()); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	return nil
}

// End ends the adding of series.
func (s *Spool) End() error {
	err := s.w.Flush()
	var size int64
	if err == nil {
		size, err = s.file.Seek(0, io.SeekEnd)
	}
	if err == nil && size > 0 {
		s.text, err = unix.Mmap(int(s.file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	s.w, s.buf = nil, encoding.Encbuf{}
	return nil
}

// Close removes the file. No method may run.
func (s *Spool) Close() error {
	var err error
	if s.text != nil {
		err = unix.Munmap(s.text)
		s.text = nil
	}
	return errors.Join(err, s.file.Close())
}

// Scan is Block.Scan.
func (s *Spool) Scan(ctx context.Context, from, to int64, keep Keep) (*Rows, error) {
	d := &encoding.Decbuf{B: s.text}
	rows := &Rows{source: s, from: from, to: to}
	var lset []series.Label
	var within []chunks.Meta
	for n := 0; d.Len() > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("read temporary file: %w", context.Cause(ctx))
		}
		at := len(s.text) - d.Len()
		lset, within = spooledLabels(d, lset[:0]), within[:0]
		for i := d.Uvarint(); i > 0 && d.Err() == nil; i-- {
			first, last, ref := d.Varint64(), d.Varint64(), len(s.text)-d.Len()
			d.Byte()
			d.UvarintBytes()
			if last >= from && first < to { // a server's word: Read looks at the times of all samples
				within = append(within, chunks.Meta{MinTime: math.MinInt64, MaxTime: last, Ref: chunks.ChunkRef(ref)})
			}
		}
		if d.Err() != nil {
			return nil, fmt.Errorf("read temporary file: %w", d.Err())
		}
		if len(within) == 0 {
			continue
		}
		ref, ok, err := keep(lset, rowBytes+int64(len(within))*placeBytes)
		if err != nil {
			return nil, err
		}
		if ok {
			rows.add(ref, storage.SeriesRef(at), within, nil)
		}
	}
	rows.byRef = nil
	return rows, nil
}

// spooledLabels appends the labels of a series, by name and without empty values.
func spooledLabels(d *encoding.Decbuf, lset []series.Label) []series.Label {
	for n := d.Uvarint(); n > 0 && d.Err() == nil; n-- {
		if l := (series.Label{Name: d.UvarintStr(), Value: d.UvarintStr()}); l.Value != "" {
			lset = append(lset, l)
		}
	}
	return lset
}

// load implements source. The reference of a chunk is where its encoding is.
func (s *Spool) load(m chunks.Meta) (chunkenc.Chunk, error) {
	d := encoding.Decbuf{B: s.text[m.Ref:]}
	kind, data := d.Byte(), d.UvarintBytes()
	if d.Err() != nil {
		return nil, d.Err()
	}
	return s.pool.Get(chunkenc.Encoding(kind), data)
}

// release implements source.
func (s *Spool) release(c chunkenc.Chunk) error { return s.pool.Put(c) }

// corrupt implements source.
func (s *Spool) corrupt(at storage.SeriesRef, _ chunks.ChunkRef, err error) (*CorruptError, bool) {
	var b labels.ScratchBuilder
	for _, l := range spooledLabels(&encoding.Decbuf{B: s.text[at:]}, nil) {
		b.Add(l.Name, l.Value)
	}
	b.Sort()
	return &CorruptError{Err: err, Series: b.Labels()}, false
}
