package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"golang.org/x/term"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
)

// printReport writes a report for scripts, as indented JSON, or for readers.
func printReport(out flags.Streams, asJSON bool, report any, text func() string) error {
	if !asJSON {
		return out.Print("report", text())
	}
	enc := json.NewEncoder(out.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(report); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

func printTable(w io.Writer, v model.Value) error {
	t := human.Table{Left: 3}
	row := func(series model.Metric, at model.Time, v fmt.Stringer) {
		t.Row(series.String(), clock(at), v.String())
	}
	switch v := v.(type) {
	case model.Vector:
		t.Row("SERIES", "TIME", "VALUE")
		for _, s := range v {
			if s.Histogram != nil {
				row(s.Metric, s.Timestamp, s.Histogram)
			} else {
				row(s.Metric, s.Timestamp, s.Value)
			}
		}
	case model.Matrix:
		t.Row("SERIES", "TIME", "VALUE")
		for _, s := range v {
			for _, p := range s.Values {
				row(s.Metric, p.Timestamp, p.Value)
			}
			for _, p := range s.Histograms {
				row(s.Metric, p.Timestamp, p.Histogram)
			}
		}
	case *model.Scalar:
		t.Row("TIME", "VALUE")
		t.Row(clock(v.Timestamp), v.Value.String())
	case *model.String:
		t.Row("TIME", "VALUE")
		t.Row(clock(v.Timestamp), v.Value)
	default:
		return fmt.Errorf("no table for an answer of type %s", v.Type())
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func clock(t model.Time) string { return t.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// pager shows texts with the user's pager.
type pager struct {
	*terminal
	out *os.File // the terminal
}

// show shows a text that is longer or wider than the screen with $PAGER, or less. It reports
// whether the pager has shown it.
func (p pager) show(text string) bool {
	width, height, err := term.GetSize(int(p.out.Fd()))
	if err != nil || p.usual == nil || p.editing == nil || fits(text, width, height-1) {
		return false
	}
	command := cmp.Or(os.Getenv("PAGER"), "less")
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
