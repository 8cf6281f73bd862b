package explain

import (
	"slices"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// filesOf changes the files that a scan in SQL reads to those that the read takes, which has
// rollups instead of some samples.
func filesOf(read *exec.Input, files []File) []File {
	for o, rows := range read.Taken {
		if len(rows) == 0 {
			continue
		}
		of := &read.Res.Objects[o]
		for i := range files {
			f := &files[i]
			k := slices.IndexFunc(of.Footer.Meta.Files, func(x block.File) bool { return of.Block.File(x.Name) == f.Key })
			if k < 0 {
				continue
			}
			spans := spansOf(read.Files, f.Key)
			f.RowGroups.Read, f.Bytes.Read = 0, 0
			groups := of.Footer.Meta.Files[k].RowGroups
			for j := range groups {
				if n := bytesOf(spans, &groups[j]); n > 0 {
					f.RowGroups.Read, f.Bytes.Read = f.RowGroups.Read+1, f.Bytes.Read+n
				}
			}
		}
		file := read.Rolled.File(o)
		rolled := File{Key: of.Block.File(file.Name), Bytes: request.Share{Considered: file.Bytes}}
		for _, span := range spansOf(read.Rollups, rolled.Key) {
			rolled.Bytes.Read += span[1]
		}
		files = append(files, rolled)
	}
	return files
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
