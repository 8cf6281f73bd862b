package block

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/promlake/promlake/internal/key"
)

// Files takes the files of a block. What was closed without an error is durable. A block is whole once meta.json is closed: it is
// the last file to be created. Several files are open at a time; after an error of the writer those remain open, and whoever
// implements Files disposes of them.
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
	Level        key.Level // chooses the compression: the longer a block lives, the harder it is squeezed
	HasST        bool      // samples may have start timestamps (some source has the column st): sample files get the column st
	RowGroupRows int       // rows of a row group at most
	FileBytes    int64     // bytes of a file of samples or histograms, about: it ends with the row group that may not leave room for another
}

// withDefaults checks o and puts the defaults in.
func (o Options) withDefaults() (Options, error) {
	if o.RowGroupRows == 0 {
		o.RowGroupRows = DefaultRowGroupRows
	}
	if o.FileBytes == 0 {
		o.FileBytes = DefaultFileBytes
	}
	switch {
	case o.RowGroupRows < 1:
		return o, fmt.Errorf("block options: %d rows in a row group", o.RowGroupRows)
	case o.FileBytes < 1:
		return o, fmt.Errorf("block options: %d bytes in a file", o.FileBytes)
	case int(o.Level) >= len(squeeze):
		return o, fmt.Errorf("block options: unknown level %s", o.Level)
	}
	return o, nil
}

// squeeze is how hard the blocks of a level are compressed.
var squeeze = [...]zstd.EncoderLevel{
	key.Part: zstd.SpeedFastest,
	key.L2h:  zstd.SpeedDefault,
	key.L12h: zstd.SpeedBetterCompression,
	key.L24h: zstd.SpeedBestCompression,
}

// zstdWindow is how far back a page may refer to itself, in bytes: pages of 128k eight-byte values are whole within it.
const zstdWindow = 1 << 20

func newZstd(l key.Level) (*zstd.Encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(squeeze[l]), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("create zstd encoder: %w", err)
	}
	return z, nil
}
