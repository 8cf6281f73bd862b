package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
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

const busyAfter, busyEvery = 2 * time.Second, time.Second

// busy shows for how long a statement has been running, once that is longer than busyAfter.
func busy(out io.Writer) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		begun, next := time.Now(), time.NewTimer(busyAfter)
		defer next.Stop()
		for shown := false; ; shown = true {
			select {
			case <-done:
				if shown {
					_, _ = io.WriteString(out, eraseLine)
				}
				return
			case <-next.C:
				_, _ = fmt.Fprintf(out, "%srunning for %d s; Ctrl-C cancels", eraseLine, int(time.Since(begun).Seconds()))
				next.Reset(busyEvery)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
