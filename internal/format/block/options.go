package block

import (
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Files stores the files of a block. A file that was closed without an error is durable. A block is
// complete once meta.json, its last file, is closed. Several files are open at a time; after an
// error of the writer they stay open, and the implementation of Files disposes of them.
type Files interface {
	Create(name string) (io.WriteCloser, error)
}

// Defaults of Options.
const (
	DefaultRowGroupRows = 128 << 10
	DefaultFileBytes    = 64 << 20
)

// Options shape a block. The zero value of a number means its default.
type Options struct {
	Level        key.Level // chooses the compression level: higher for blocks that live longer
	HasST        bool      // sample files have the column st
	RowGroupRows int       // rows of a row group at most
	FileBytes    int64     // about, of a file of samples or histograms; it ends with a row group
	Floats       int64     // of the block, about: the writer makes room for them once. 0: unknown
	// Encoders keeps the block's zstd encoder for later blocks. nil keeps none.
	Encoders *parquetfile.Encoders
}

// squeeze is the compression level by block level.
var squeeze = [...]zstd.EncoderLevel{
	key.Part: zstd.SpeedFastest,
	key.L2h:  zstd.SpeedDefault,
	key.L12h: zstd.SpeedBetterCompression,
	key.L24h: zstd.SpeedBetterCompression,
}

// trial returns the compression level at which the layouts of integers are compared for a block of
// level l. Trials take more time than the pages that are kept, and a faster level nearly always
// chooses the same layouts.
func trial(l key.Level) zstd.EncoderLevel { return min(squeeze[l], zstd.SpeedDefault) }

// tryAll, of newIntPages, lets each unit be tried.
const tryAll = 0

// untried is how many neighbours of the first unit of a metric have its layout without being tried:
// nearly all of a part, which lives for two hours, would have it anyway.
func untried(l key.Level) int {
	if l == key.Part {
		return partSkip
	}
	return tryAll
}
