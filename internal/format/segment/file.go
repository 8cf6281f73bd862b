package segment

import (
	"encoding/json"
	"fmt"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// File is an encoded segment in memory whose footer is decoded.
type File struct {
	layout  *parquetfile.Layout
	data    []byte
	samples int64
}

// Open decodes the footer of a segment. The result shares data. Errors: ErrFormat.
func Open(data []byte) (File, error) {
	l, err := parquetfile.LayoutOf(data)
	if err != nil {
		return File{}, asFormat(err)
	}
	if err := checkVersion(l.KeyValues); err != nil {
		return File{}, err
	}
	f := File{layout: l, data: data}
	if f.HasRest() { // only then the number of values is not that of samples
		var info Info
		if err := json.Unmarshal([]byte(l.KeyValues[kvInfo]), &info); err != nil {
			return File{}, fmt.Errorf("%w: decode info: %w", ErrFormat, err)
		}
		f.samples = info.Samples
	} else if leaf := l.Column(parquetfile.ListPath(ColTS)...); leaf >= 0 {
		for i := range l.Groups {
			f.samples += l.Groups[i].Chunks[leaf].Values
		}
	}
	return f, nil
}

// Bytes is the size of the file.
func (f *File) Bytes() int64 { return int64(len(f.data)) }

// Rows is the number of series.
func (f *File) Rows() int64 { return f.layout.Rows }

// Samples is the number of samples. A series without any counts as one.
func (f *File) Samples() int64 { return f.samples }

// HasST reports whether samples have start timestamps.
func (f *File) HasST() bool { return f.has(ColST) }

// HasRest reports whether there are native histograms or exemplars.
func (f *File) HasRest() bool { return f.has(ColHist) || f.has(ColExTS) }

func (f *File) has(col string) bool { return f.layout.Column(parquetfile.ListPath(col)...) >= 0 }
