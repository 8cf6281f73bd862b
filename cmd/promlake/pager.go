package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// pager shows texts with the user's pager.
type pager struct {
	*terminal
	out *os.File // the terminal
}

func (t *terminal) pager(out *os.File) pager { return pager{t, out} }

// show shows a text that is longer or wider than the screen with $PAGER, or less. It reports whether
// the pager has shown it.
func (p pager) show(text string) bool {
	width, height, err := term.GetSize(int(p.out.Fd()))
	if err != nil || p.usual == nil || p.editing == nil || fits(text, width, height-1) {
		return false
	}
	command := os.Getenv("PAGER")
	if command == "" {
		command = "less"
	}
	if fields := strings.Fields(command); len(fields) == 0 {
		return false
	} else if _, err := exec.LookPath(fields[0]); err != nil {
		return false
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), p.out, p.out
	if os.Getenv("LESS") == "" { // lines as they are, and the answer stays on the screen
		cmd.Env = append(os.Environ(), "LESS=SRX")
	}
	if p.usual.ApplyMode() != nil {
		return false
	}
	err = cmd.Run()
	if again := p.editing.ApplyMode(); again != nil {
		fmt.Fprintln(p.out, "error: set the terminal's mode again:", again)
	}
	if err != nil {
		fmt.Fprintf(p.out, "error: the pager %q: %v\n", command, err)
	}
	return true
}

// fits reports whether a text has no more than height lines, of at most width characters.
func fits(text string, width, height int) bool {
	n := 0
	for line := range strings.Lines(text) {
		if n++; n > height || utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
			return false
		}
	}
	return true
}
