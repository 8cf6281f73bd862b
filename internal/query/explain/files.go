package explain

import (
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// filesOf returns the objects of a planned read: files of blocks with row groups that are read,
// rollups and segments.
func filesOf(read *exec.Input) (out []File) {
	if read.Whole == nil { // samples in memory
		return nil
	}
	for i, members := range read.Whole.Rows {
		o := &read.Res.Objects[i]
		if !o.IsBlock() {
			if len(members) > 0 {
				out = append(out, File{Key: o.Series, Bytes: request.Share{Considered: o.Size, Read: o.Size}})
			}
			continue
		}
		for j := range o.Footer.Meta.Files {
			f := &o.Footer.Meta.Files[j]
			if !block.FloatFiles.Has(f) {
				continue
			}
			file := File{Key: o.Block.File(f.Name), RowGroups: request.Share{Considered: int64(len(f.RowGroups))}}
			spans := spansOf(read.Files, file.Key)
			for k := range f.RowGroups {
				file.Bytes.Considered += block.FloatFiles.Bytes(&f.RowGroups[k])
				if n := bytesOf(spans, &f.RowGroups[k]); n > 0 {
					file.RowGroups.Read, file.Bytes.Read = file.RowGroups.Read+1, file.Bytes.Read+n
				}
			}
			if file.RowGroups.Read > 0 {
				out = append(out, file)
			}
		}
		if i < len(read.Taken) && len(read.Taken[i]) > 0 {
			f := read.Rolled.File(i)
			file := File{Key: o.Block.File(f.Name), Bytes: request.Share{Considered: f.Bytes}}
			for _, span := range spansOf(read.Rollups, file.Key) {
				file.Bytes.Read += span[1]
			}
			out = append(out, file)
		}
	}
	return out
}

// spansOf returns the ranges that are read of a file.
func spansOf(reads []source.Parts, key string) (out [][2]int64) {
	for i := range reads {
		if reads[i].Key == key {
			out = append(out, reads[i].Spans...)
		}
	}
	return out
}

// bytesOf returns the bytes of ranges that are in a row group.
func bytesOf(spans [][2]int64, g *block.RowGroup) (n int64) {
	for _, s := range spans {
		for _, c := range g.Stored() {
			if s[0] >= c[0] && s[0] < c[0]+c[1] {
				n += s[1]
			}
		}
	}
	return n
}
