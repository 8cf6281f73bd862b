package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// bar is a progress line at the bottom of a terminal. All other output to the terminal is written
// through it, so that this output scrolls above the line. It is safe for concurrent use.
type bar struct {
	mu    sync.Mutex
	out   io.Writer
	width int // columns of the terminal
	line  string
}

// newBar returns a bar on w, or nil if w is no terminal.
func newBar(w io.Writer) *bar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return &bar{out: w, width: width}
}

// eraseLine returns to the beginning of the line and erases it (ECMA-48).
const eraseLine = "\r\x1b[K"

// Write prints above the line. It implements io.Writer.
func (b *bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line == "" {
		return b.out.Write(p)
	}
	if _, err := io.WriteString(b.out, eraseLine); err != nil {
		return 0, err
	}
	n, err := b.out.Write(p)
	if err == nil {
		_, err = io.WriteString(b.out, b.line)
	}
	return n, err
}

// show replaces the line with the share of the work that is done, and text. An empty text erases
// the line.
func (b *bar) show(done, total int64, text string) {
	if text != "" {
		text = gauge(done, total) + " " + text
	}
	b.draw(text)
}

// draw replaces the line. An empty one is erased.
func (b *bar) draw(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := []rune(text)
	b.line = string(line[:min(len(line), b.width-1)])
	// A terminal that is gone needs no progress.
	_, _ = io.WriteString(b.out, eraseLine+b.line)
}

// gauge draws done of total, which may be an estimate that is too low.
func gauge(done, total int64) string {
	const width = 24
	part := 0.0
	if total > 0 {
		part = min(float64(done)/float64(total), 1)
	}
	full := int(width * part)
	return fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("█", full), strings.Repeat("░", width-full), 100*part)
}
