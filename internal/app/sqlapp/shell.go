package sqlapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/promlake/promlake/internal/app/human"
)

// ErrAborted is the error of Terminal.Line when the user drops what was typed (Ctrl-C).
var ErrAborted = errors.New("the line was dropped")

// Terminal reads lines that a user edits.
type Terminal interface {
	// Line returns the next line without its end. Errors: ErrAborted, io.EOF when the user leaves,
	// and those of the terminal.
	Line(prompt string) (string, error)
	// Remember adds a line to the history.
	Remember(line string)
}

// Asker runs one statement, whose rows are the answer.
type Asker func(ctx context.Context, statement string) (*Answer, error)

// Shell runs statements of a user. All fields but Page and Busy are required.
type Shell struct {
	Terminal Terminal
	Ask      Asker
	Out      io.Writer
	// Cancellable returns a context that ends with ctx, or when the user cancels what runs
	// (Ctrl-C).
	Cancellable func(ctx context.Context) (context.Context, context.CancelFunc)
	// Page shows a text page by page if it is longer than the screen, and reports whether it did.
	Page func(text string) bool
	// Busy shows that the statement of the context that it returns runs, until stop.
	Busy func(ctx context.Context) (running context.Context, stop func())

	unpaged bool // the user wants no pages
}

const (
	prompt    = "promlake> "
	continued = "     ...> "
	// MostRows is how many rows of a result are shown.
	MostRows = 1000
)

const help = `Statements end with ; and may have several lines. Ctrl-C drops what is typed, or cancels what runs.
\d          tables with their columns, and table functions
\d TABLE    columns of a table
\?          this text
\pager on   show answers that are longer than the screen with $PAGER, or less; off: as they are
\q          leave, as Ctrl-D does
`

// Run reads and runs statements until the user leaves or ctx ends. A statement that fails does not
// end it.
func (s *Shell) Run(ctx context.Context) error {
	typed := ""
	for ctx.Err() == nil {
		p := prompt
		if typed != "" {
			p = continued
		}
		line, err := s.Terminal.Line(p)
		switch {
		case errors.Is(err, ErrAborted):
			typed = ""
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read from the terminal: %w", err)
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		s.Terminal.Remember(line)
		if typed == "" {
			if s.pager(line) {
				continue
			}
			if statement, leave, ok := command(line); leave {
				return nil
			} else if ok {
				if err := s.run(ctx, statement); err != nil {
					return err
				}
				continue
			}
		}
		statements, rest := Split(typed + line + "\n")
		typed = rest
		for _, statement := range statements {
			if err := s.run(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// tables describes what can be asked. %s is a condition.
const tables = "SELECT table_name AS \"table\", string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) AS columns " +
	"FROM information_schema.columns WHERE table_schema = 'main' GROUP BY ALL " +
	"UNION ALL SELECT * FROM (VALUES ('promlake_metric(name, start, end)', 'ts, value, a column for each label'), " +
	"('promql(expr, start, end, step)', 'metric, labels, ts, value')) ORDER BY ALL"

// command returns the statement of a command; the text of help has none. ok: the line is a command.
func command(line string) (statement string, leave, ok bool) {
	fields := strings.Fields(strings.TrimRight(strings.TrimSpace(line), "; "))
	if len(fields) == 0 {
		return "", false, false
	}
	switch name := strings.ToLower(fields[0]); {
	case len(fields) == 1 && (name == `\q` || name == "exit" || name == "quit"):
		return "", true, true
	case len(fields) == 1 && name == `\d`:
		return tables, false, true
	case len(fields) == 2 && name == `\d`:
		return "DESCRIBE " + `"` + strings.ReplaceAll(fields[1], `"`, `""`) + `"`, false, true
	case strings.HasPrefix(name, `\`):
		return "", false, true
	}
	return "", false, false
}

// pager obeys a line that turns pages on or off.
func (s *Shell) pager(line string) bool {
	switch strings.Join(strings.Fields(strings.ToLower(line)), " ") {
	case `\pager on`:
		s.unpaged = false
	case `\pager off`:
		s.unpaged = true
	default:
		return false
	}
	return true
}

// run runs a statement and prints its rows, or its error. It returns only errors of the output.
func (s *Shell) run(ctx context.Context, statement string) error {
	if statement == "" {
		return s.print(help)
	}
	ctx, cancel := s.Cancellable(ctx)
	defer cancel()
	stop := func() {}
	if s.Busy != nil {
		ctx, stop = s.Busy(ctx)
	}
	text, err := s.rows(ctx, statement)
	stop()
	switch {
	case ctx.Err() != nil:
		return s.print("cancelled\n")
	case err != nil:
		return s.print("error: " + err.Error() + "\n")
	case !s.unpaged && s.Page != nil && s.Page(text):
		return nil
	}
	return s.print(text)
}

// rows returns the first rows of a statement as a table.
func (s *Shell) rows(ctx context.Context, statement string) (string, error) {
	a, err := s.Ask(ctx, statement)
	if err != nil {
		return "", err
	}
	defer a.Close()
	var b strings.Builder
	err = PrintTable(&b, a.Columns, a.Next)
	return b.String(), err
}

// PrintTable writes the first MostRows rows as a table, with their number. next returns a row, and
// io.EOF after the last one.
func PrintTable(w io.Writer, columns []string, next func() ([]string, error)) error {
	t := human.Table{Left: len(columns)}
	t.Row(columns...)
	n := 0
	for {
		row, err := next()
		end := plural(n)
		if err == nil && n == MostRows {
			err, end = io.EOF, fmt.Sprintf("(the first %d rows; promlake sql --format csv prints all)\n", n)
		}
		if errors.Is(err, io.EOF) {
			_, err := io.WriteString(w, t.String()+end)
			return err
		} else if err != nil {
			return err
		}
		t.Row(row...)
		n++
	}
}

func plural(n int) string {
	if n == 1 {
		return "(1 row)\n"
	}
	return fmt.Sprintf("(%d rows)\n", n)
}

func (s *Shell) print(text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}
