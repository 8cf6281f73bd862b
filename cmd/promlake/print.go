package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"golang.org/x/term"
)

// printReport writes a report for scripts, as indented JSON, or for readers.
func printReport(w io.Writer, asJSON bool, report any, text func() string) error {
	if !asJSON {
		_, err := io.WriteString(w, text())
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

func printTable(w io.Writer, v model.Value) error {
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	switch v := v.(type) {
	case model.Vector:
		t.row("SERIES", "TIME", "VALUE")
		for _, s := range v {
			var value any = s.Value
			if s.Histogram != nil {
				value = s.Histogram
			}
			t.row(s.Metric, clock(s.Timestamp), value)
		}
	case model.Matrix:
		t.row("SERIES", "TIME", "VALUE")
		for _, s := range v {
			for _, p := range s.Values {
				t.row(s.Metric, clock(p.Timestamp), p.Value)
			}
			for _, p := range s.Histograms {
				t.row(s.Metric, clock(p.Timestamp), p.Histogram)
			}
		}
	case *model.Scalar:
		t.row("TIME", "VALUE")
		t.row(clock(v.Timestamp), v.Value)
	case *model.String:
		t.row("TIME", "VALUE")
		t.row(clock(v.Timestamp), v.Value)
	default:
		return fmt.Errorf("no table for an answer of type %s", v.Type())
	}
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// table writes rows until the first error, which it keeps.
type table struct {
	w   *tabwriter.Writer
	err error
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		end := "\t"
		if i == len(cells)-1 {
			end = "\n"
		}
		if t.err == nil {
			_, t.err = fmt.Fprint(t.w, c, end)
		}
	}
}

func clock(t model.Time) string { return t.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// pager shows texts with the user's pager.
type pager struct {
	*terminal
	out *os.File // the terminal
}

func (t *terminal) pager(out *os.File) pager { return pager{t, out} }

// show shows a text that is longer or wider than the screen with $PAGER, or less. It reports
// whether the pager has shown it.
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
