// Package capture reads recorded scrapes.
//
// A capture is text, plain or compressed with gzip, zstd or xz:
//
//	@@ 1795220058000                  a scrape begins; its time in ms since the Unix epoch
//	node_load1 1.48                   its samples in the text exposition format, comments allowed
//	node_cpu_seconds_total{cpu="0",mode="idle"} 930.29
//	@@ 1795220074000                  the next scrape
package capture

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
)

// MaxBytes is the largest capture that Read accepts, in bytes after decompression.
const MaxBytes = 1 << 30

// ErrFormat reports bytes that are not a capture.
var ErrFormat = errors.New("not a capture")

var marker = []byte("@@ ")

// Series is one series of a capture.
type Series struct {
	Labels labels.Labels // sorted by name, empty values removed
	Values []float64     // one per scrape
}

// Capture is a recording in columns.
type Capture struct {
	Times   []int64  // ms since the Unix epoch, strictly ascending, one per scrape
	Series  []Series // in the order of the first scrape
	Dropped int      // series left out because some scrape lacks them
}

//go:embed testdata/node_exporter.txt.zst
var golden []byte

// Open reads the capture in the file at path, or without a path the golden one: twenty scrapes of a
// node_exporter.
func Open(path string) (*Capture, error) {
	if path == "" {
		c, err := Read(bytes.NewReader(golden))
		if err != nil {
			return nil, fmt.Errorf("read golden capture: %w", err)
		}
		return c, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open capture: %w", err)
	}
	defer f.Close() // read only: nothing to lose
	c, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read capture %s: %w", path, err)
	}
	return c, nil
}

// Read reads a capture, decompressed according to its first bytes. Only series that every scrape
// has are kept. Errors: ErrFormat, or that of the decompressor or of r.
func Read(r io.Reader) (*Capture, error) {
	plain, done, err := decompress(r)
	if err != nil {
		return nil, err
	}
	defer done()
	b := newBuilder()
	if err := eachScrape(&limitReader{r: plain, left: MaxBytes}, b.add); err != nil {
		return nil, err
	}
	return b.finish()
}

// eachScrape calls f with the time (ms) and the exposition text of every scrape. The text is valid
// until f returns.
func eachScrape(r io.Reader, f func(ts int64, text []byte) error) error {
	var (
		in     = bufio.NewReaderSize(r, 1<<16)
		text   bytes.Buffer
		ts     int64
		inside bool
	)
	flush := func() error {
		if !inside {
			return nil
		}
		if err := f(ts, text.Bytes()); err != nil {
			return fmt.Errorf("parse scrape of %d: %w", ts, err)
		}
		text.Reset()
		return nil
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read line: %w", err)
		}
		if stamp, ok := bytes.CutPrefix(line, marker); ok {
			if err := flush(); err != nil {
				return err
			}
			if ts, err = strconv.ParseInt(string(bytes.TrimSpace(stamp)), 10, 64); err != nil {
				return fmt.Errorf("%w: scrape time: %w", ErrFormat, err)
			}
			inside = true
		} else if len(bytes.TrimSpace(line)) > 0 {
			if !inside {
				return fmt.Errorf("%w: it does not begin with %q", ErrFormat, marker)
			}
			text.Write(line)
		}
		if len(line) == 0 || line[len(line)-1] != '\n' {
			return flush()
		}
	}
}
