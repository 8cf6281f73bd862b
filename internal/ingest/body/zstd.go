package body

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// frames are zstd's frames (RFC 8878). They are decompressed at once into memory that is large
// enough: a decoder of streams would have a window of up to 8 MiB of its own.
type frames struct {
	sent []byte
	most int64 // bytes that they can decompress to
}

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
})

func (f frames) first() int64 { return max(f.most, 1) }

// fill implements unpacker. Where the memory is limited to less than first, an error may mean that
// more is needed.
func (f frames) fill(b []byte, _ int64) (int64, bool, error) {
	d, err := zstdDecoder()
	if err != nil {
		return 0, false, fmt.Errorf("start decoder: %w", err)
	}
	out, err := d.DecodeAll(f.sent, b[:0:len(b)])
	switch {
	case err == nil && len(out) <= len(b):
		return int64(copy(b, out)), true, nil // mostly from b to itself
	case int64(len(b)) < f.most:
		return int64(len(b)), false, nil
	}
	return 0, false, cmp.Or(err, errFrame)
}

// errFrame reports a frame that ends early, or holds more than its headers state.
var errFrame = errors.New("frame whose size is not that of its headers")

// maxBlock is the most bytes that a block decompresses to (RFC 8878, 3.1.1.2.4).
const maxBlock = 128 << 10

// mostOf bounds what frames decompress to, by the sizes that the headers of frames and blocks
// state.
func mostOf(sent []byte) (most int64, err error) {
	for len(sent) > 0 {
		var h zstd.Header
		if err := h.Decode(sent); err != nil {
			return 0, err
		}
		sent = sent[h.HeaderSize:]
		if h.Skippable {
			if int64(h.SkippableSize) > int64(len(sent)) {
				return 0, errFrame
			}
			sent = sent[h.SkippableSize:]
			continue
		}
		blocks := int64(0)
		for last := false; !last; {
			if len(sent) < 3 {
				return 0, errFrame
			}
			// A block's header: whether it is the last (1 bit), type (2 bits), size (21 bits).
			head := int(sent[0]) | int(sent[1])<<8 | int(sent[2])<<16
			last = head&1 != 0
			size, kind := head>>3, head>>1&3
			bytes, out := size, size // raw
			switch kind {
			case 1: // one byte, repeated
				bytes = 1
			case 2: // compressed
				out = maxBlock
			}
			if bytes > len(sent)-3 {
				return 0, errFrame
			}
			sent, blocks = sent[3+bytes:], blocks+int64(out)
		}
		if h.HasCheckSum {
			if len(sent) < 4 {
				return 0, errFrame
			}
			sent = sent[4:]
		}
		if h.HasFCS {
			blocks = min(int64(min(h.FrameContentSize, math.MaxInt64)), blocks)
		}
		most += blocks
	}
	return most, nil
}
