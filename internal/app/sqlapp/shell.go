package sqlapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
		end := fmt.Sprintf("(%d rows)\n", n)
		if n == 1 {
			end = "(1 row)\n"
		}
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

func (s *Shell) print(text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// Split divides a text into statements, each without its semicolon, and the rest that no semicolon
// ends. Semicolons in texts, names and comments end nothing. Empty statements are left out, as is a
// rest of blanks and comments.
func Split(text string) (statements []string, rest string) {
	begin, some := 0, false // some: the statement has more than blanks and comments
	for i := 0; i < len(text); {
		end, blank := token(text[i:])
		switch {
		case text[i] == ';':
			if some {
				statements = append(statements, strings.TrimSpace(text[begin:i]))
			}
			begin, some = i+1, false
		case !blank:
			some = true
		}
		i += end
	}
	if rest = strings.TrimLeft(text[begin:], " \t\r\n"); !some && !strings.HasPrefix(rest, "/*") {
		rest = ""
	}
	return statements, rest
}

// token returns the length of the text, name, comment or character at the beginning of s, and
// whether it is a blank or a comment. What has no end reaches to the end of s.
func token(s string) (n int, blank bool) {
	until := func(from int, end string) int {
		if i := strings.Index(s[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(s)
	}
	switch {
	case s[0] == '\'' || s[0] == '"': // a doubled quote is two texts here, which ends the same
		return until(1, s[:1]), false
	case strings.HasPrefix(s, "--"):
		return until(2, "\n"), true
	case strings.HasPrefix(s, "/*"):
		return until(2, "*/"), true
	case s[0] == '$':
		if i := strings.IndexByte(s[1:], '$'); i >= 0 && !strings.ContainsAny(s[1:i+1], " \t\n;,()0123456789") {
			return until(i+2, s[:i+2]), false
		}
	}
	return 1, strings.ContainsRune(" \t\r\n", rune(s[0]))
}

// words are completed beside the names of the tables and columns.
var words = strings.Fields(`SELECT FROM WHERE GROUP BY ALL ORDER LIMIT JOIN USING HAVING WITH AS AND OR NOT NULL IN LIKE BETWEEN INTERVAL DISTINCT UNION
	DESCRIBE EXPLAIN ANALYZE SUMMARIZE VALUES CASE WHEN THEN ELSE END OVER PARTITION DESC ASC
	promlake_metric( promql( now() time_bucket( date_trunc( count(*) count( sum( avg( min( max( arg_max( arg_min( median( quantile_cont( unnest( map_keys(
	prom_rate( prom_increase( prom_delta( prom_irate( prom_avg_over_time( prom_min_over_time( prom_max_over_time( prom_sum_over_time(
	prom_count_over_time( prom_last_over_time( prom_quantile_over_time( \d \pager \q \?`)

// Names returns the words that a shell completes, sorted: also without an answer, then those that
// are always there.
func Names(ctx context.Context, ask Asker) []string {
	names := slices.Clone(words)
	a, err := ask(ctx, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'main'")
	if err == nil {
		defer a.Close()
		for row, err := a.Next(); err == nil; row, err = a.Next() {
			names = append(names, row...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Complete returns the words that the word before a position (in characters) of a line may become,
// and what is before and behind it.
func Complete(names []string, line string, position int) (head string, completions []string, tail string) {
	chars := []rune(line)
	before, tail := string(chars[:position]), string(chars[position:])
	begin := strings.LastIndexFunc(before, func(r rune) bool { return strings.ContainsRune(" \t,;()[]'\"=<>+-*/.", r) }) + 1
	head, word := before[:begin], before[begin:]
	if word == "" {
		return head, nil, tail
	}
	// All completions begin with the same letters, because the line editor writes what they have in
	// common in the place of the word: with those of the word, or else in the case of the first
	// name.
	if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, word) }) {
		i := slices.IndexFunc(names, func(n string) bool { return len(n) >= len(word) && strings.EqualFold(n[:len(word)], word) })
		if i < 0 {
			return head, nil, tail
		}
		word = names[i][:len(word)]
	}
	for _, n := range names {
		if strings.HasPrefix(n, word) {
			completions = append(completions, n)
		}
	}
	return head, completions, tail
}
