package capture_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
)

const twoScrapes = `@@ 1000
# TYPE up gauge
up 1
hits_total{code="200",empty="",path="/a b"} 1e3
once 7
@@ 3000

up 0
hits_total{code="200",path="/a b"} NaN
late 7
`

func TestRead(t *testing.T) {
	c, err := capture.Read(strings.NewReader(twoScrapes))
	require.NoError(t, err)
	require.Equal(t, []int64{1000, 3000}, c.Times)
	require.Equal(t, 2, c.Dropped, "once and late are not in every scrape")
	require.Len(t, c.Series, 2)
	require.Equal(t, labels.FromStrings("__name__", "up"), c.Series[0].Labels)
	require.Equal(t, []float64{1, 0}, c.Series[0].Values)
	require.Equal(t, labels.FromStrings("__name__", "hits_total", "code", "200", "path", "/a b"), c.Series[1].Labels)
	require.Equal(t, 1000.0, c.Series[1].Values[0])
	require.True(t, math.IsNaN(c.Series[1].Values[1]))
}

func TestReadWithoutFinalNewline(t *testing.T) {
	c, err := capture.Read(strings.NewReader("@@ 1000\nup 1\n@@ 2000\nup 2"))
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2}, c.Series[0].Values)
}

func TestOpenCompressed(t *testing.T) {
	for name, compress := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		"xz":  compressXz,
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w, err := compress(&b)
			require.NoError(t, err)
			_, err = io.WriteString(w, twoScrapes)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			path := filepath.Join(t.TempDir(), "capture")
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
			c, err := capture.Open(path)
			require.NoError(t, err)
			require.Len(t, c.Series, 2)

			_, err = capture.Read(bytes.NewReader(b.Bytes()[:b.Len()-10]))
			require.Error(t, err, "cut off")
		})
	}
}

// xzWriter is the input of the program xz.
type xzWriter struct {
	io.WriteCloser
	cmd *exec.Cmd
}

func compressXz(w io.Writer) (io.WriteCloser, error) {
	cmd := exec.Command("xz")
	cmd.Stdout = w
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return xzWriter{in, cmd}, cmd.Start()
}

func (w xzWriter) Close() error { return errors.Join(w.WriteCloser.Close(), w.cmd.Wait()) }

func TestNotACapture(t *testing.T) {
	for name, text := range map[string]string{
		"empty":         "",
		"no time":       "up 1\n",
		"bad time":      "@@ soon\nup 1\n",
		"time repeats":  "@@ 1000\nup 1\n@@ 1000\nup 1\n",
		"bad sample":    "@@ 1000\nup one\n",
		"nothing stays": "@@ 1000\nup 1\n@@ 2000\ndown 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := capture.Read(strings.NewReader(text))
			require.ErrorIs(t, err, capture.ErrFormat)
		})
	}
	_, err := capture.Open(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestGolden(t *testing.T) {
	c, err := capture.Open("")
	require.NoError(t, err)
	require.Len(t, c.Times, 20)
	require.Len(t, c.Series, 507)
	require.Zero(t, c.Dropped)
	for i := 1; i < len(c.Times); i++ {
		require.Equal(t, int64(16_000), c.Times[i]-c.Times[i-1])
	}
}
