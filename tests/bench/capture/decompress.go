package capture

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

var (
	magicGzip = []byte{0x1f, 0x8b}
	magicZstd = []byte{0x28, 0xb5, 0x2f, 0xfd}
	magicXz   = []byte{0xfd, '7', 'z', 'X', 'Z', 0x00}
)

// decompress returns the plain bytes of r, which it recognises by their first bytes, and a function
// that frees the decompressor.
func decompress(r io.Reader) (io.Reader, func(), error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(len(magicXz))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read first bytes: %w", err)
	}
	switch {
	case bytes.HasPrefix(head, magicGzip):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("open gzip: %w", err)
		}
		return z, func() {}, nil
	case bytes.HasPrefix(head, magicZstd):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, fmt.Errorf("open zstd: %w", err)
		}
		return z, z.Close, nil
	case bytes.HasPrefix(head, magicXz):
		return openXz(in)
	}
	return in, func() {}, nil
}

// openXz decompresses by the program xz.
func openXz(in io.Reader) (io.Reader, func(), error) {
	cmd := exec.Command("xz", "-dc")
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open xz: %w", err)
	}
	z := &xzReader{cmd: cmd, out: out}
	return z, z.close, nil
}

// xzReader is the output of xz. It ends with the error of the program, if there is one.
type xzReader struct {
	cmd  *exec.Cmd
	out  io.ReadCloser
	done bool
}

func (z *xzReader) Read(p []byte) (int, error) {
	n, err := z.out.Read(p)
	if errors.Is(err, io.EOF) && !z.done {
		z.done = true
		if failed := z.cmd.Wait(); failed != nil {
			return n, fmt.Errorf("decompress xz: %w", failed)
		}
	}
	return n, err
}

// close ends the program if it still writes.
func (z *xzReader) close() {
	if !z.done {
		_ = z.out.Close()
		_ = z.cmd.Process.Kill()
		_ = z.cmd.Wait()
	}
}

// limitReader fails, instead of ending, once more than its budget was read.
type limitReader struct {
	r    io.Reader
	left int64 // bytes
}

func (l *limitReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("%w: longer than MaxBytes (%d bytes decompressed); cut it", ErrFormat, int64(MaxBytes))
	}
	return n, err
}
