package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	pqzstd "github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/promlake/promlake/internal/format/block"
)

// stored is a row of a block's samples file, plain the same sample with its value as the double
// that it is.
type (
	stored struct {
		Metric   string  `parquet:"metric"`
		SeriesID uint64  `parquet:"series_id"`
		TS       int64   `parquet:"ts,timestamp(millisecond)"`
		Int      int64   `parquet:"v_int"`
		Div      float64 `parquet:"v_div"`
	}
	plain struct {
		Metric   string  `parquet:"metric,dict"`
		SeriesID uint64  `parquet:"series_id,dict"`
		TS       int64   `parquet:"ts,timestamp(millisecond),delta"`
		Value    float64 `parquet:"value,plain"`
	}
)

const copyRows = 8 << 10 // at a time

// writePlain writes each file's samples as plain doubles at zstd 3, in row groups of the same rows,
// into dir and returns the files.
func writePlain(files []string, dir string) ([]string, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	var out []string
	for i, path := range files {
		to := filepath.Join(dir, fmt.Sprintf("%04d.parquet", i))
		if err := rewritePlain(path, to); err != nil {
			return nil, fmt.Errorf("write %s as plain doubles: %w", path, err)
		}
		out = append(out, to)
	}
	return out, nil
}

func rewritePlain(from, to string) (err error) {
	in, err := openParquet(from)
	if err != nil {
		return err
	}
	defer in.Close() // read only
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	level := zstd.EncoderLevelFromZstd(3)
	w := parquet.NewGenericWriter[plain](out, parquet.Compression(&pqzstd.Codec{Level: level}), parquet.WriteBufferSize(0))
	for _, g := range in.RowGroups() {
		if err := copyGroup(w, g); err != nil {
			return err
		}
	}
	return w.Close()
}

// copyGroup writes one row group.
func copyGroup(w *parquet.GenericWriter[plain], g parquet.RowGroup) error {
	rows := parquet.NewGenericRowGroupReader[stored](g)
	defer rows.Close() // read only
	src, dst := make([]stored, copyRows), make([]plain, copyRows)
	for {
		n, err := rows.Read(src)
		for i, s := range src[:n] {
			dst[i] = plain{Metric: s.Metric, SeriesID: s.SeriesID, TS: s.TS, Value: block.Value(s.Int, s.Div)}
		}
		if _, err := w.Write(dst[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// parquetFile is an open Parquet file.
type parquetFile struct {
	*parquet.File
	io.Closer
}

func openParquet(path string) (*parquetFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &parquetFile{p, f}, nil
}

// columnBytes returns the compressed size of each column in files of samples.
func columnBytes(files []string) (map[string]int64, error) {
	sum := map[string]int64{}
	for _, path := range files {
		f, err := openParquet(path)
		if err != nil {
			return nil, fmt.Errorf("read footer of %s: %w", path, err)
		}
		for _, g := range f.Metadata().RowGroups {
			seen := map[int64]bool{} // chunks that have two names count once
			for _, c := range g.Columns {
				if seen[c.MetaData.DataPageOffset] {
					continue
				}
				seen[c.MetaData.DataPageOffset] = true
				sum[c.MetaData.PathInSchema[0]] += c.MetaData.TotalCompressedSize
			}
		}
		if err := f.Closer.Close(); err != nil {
			return nil, err
		}
	}
	return sum, nil
}
