package query

import (
	"slices"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// explained changes what a scan in SQL reads to what the read takes, which has rollups in the place of samples.
func (s *sampleRead) explained(files []ExplainedFile) []ExplainedFile {
	for o, members := range s.taken {
		if len(members) == 0 {
			continue
		}
		for i := range files {
			if f := s.file(o, files[i].Key); f >= 0 {
				s.recount(&files[i], o, f)
			}
		}
		b := s.rolled.File(o)
		rolled := ExplainedFile{Key: s.res.Objects[o].Block.File(b.Name), Bytes: request.Share{Considered: b.Bytes}}
		for _, span := range partsOf(s.rollups, rolled.Key) {
			rolled.Bytes.Read += span[1]
		}
		files = append(files, rolled)
	}
	return files
}

// file returns the position of a block's file by its key, -1 if it is none.
func (s *sampleRead) file(object int, key string) int {
	o := &s.res.Objects[object]
	for i := range o.Footer.Meta.Files {
		if o.Block.File(o.Footer.Meta.Files[i].Name) == key {
			return i
		}
	}
	return -1
}

// recount leaves out the row groups of a sample file that are not read.
func (s *sampleRead) recount(f *ExplainedFile, object, file int) {
	spans := partsOf(s.files, f.Key)
	f.RowGroups.Read, f.Bytes.Read = 0, 0
	groups := s.res.Objects[object].Footer.Meta.Files[file].RowGroups
	for i := range groups {
		if slices.Contains(spans, block.FloatFiles.AppendChunks(nil, &groups[i])[0]) {
			f.RowGroups.Read, f.Bytes.Read = f.RowGroups.Read+1, f.Bytes.Read+block.FloatFiles.Bytes(&groups[i])
		}
	}
}

// partsOf returns what is read of a file.
func partsOf(reads []source.Parts, key string) (out [][2]int64) {
	for i := range reads {
		if reads[i].Key == key {
			out = append(out, reads[i].Spans...)
		}
	}
	return out
}
