package sqlapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Answer is the JSON of an answer of the SQL endpoint, which is read row by row.
type Answer struct {
	Columns []string

	dec  *json.Decoder
	body io.Closer
}

// NewAnswer reads the beginning of a successful answer. It closes the body if that fails; otherwise
// Close does.
func NewAnswer(body io.ReadCloser) (*Answer, error) {
	a := &Answer{dec: json.NewDecoder(body), body: body}
	if err := a.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the answer: %w", notEOF(err)), body.Close())
	}
	return a, nil
}

// begin reads up to the first row: {"status":"success","data":{"columns":[…],"rows":[
func (a *Answer) begin() error {
	for _, want := range []string{"{", "status", "success", "data", "{", "columns"} {
		if err := a.expect(want); err != nil {
			return err
		}
	}
	var columns []struct{ Name string }
	if err := a.dec.Decode(&columns); err != nil {
		return err
	}
	for _, c := range columns {
		a.Columns = append(a.Columns, c.Name)
	}
	if err := a.expect("rows"); err != nil {
		return err
	}
	return a.expect("[")
}

func (a *Answer) expect(want string) error {
	t, err := a.dec.Token()
	if err != nil {
		return err
	}
	if got := fmt.Sprint(t); got != want {
		return fmt.Errorf("it has %q in the place of %q", got, want)
	}
	return nil
}

// Next returns the next row as texts, and io.EOF after the last one.
func (a *Answer) Next() ([]string, error) {
	if !a.dec.More() {
		if _, err := a.dec.Token(); err != nil {
			return nil, fmt.Errorf("read the answer, which is incomplete: %w", notEOF(err))
		}
		return nil, io.EOF
	}
	var values []json.RawMessage
	if err := a.dec.Decode(&values); err != nil {
		return nil, fmt.Errorf("read the answer, which is incomplete: %w", notEOF(err))
	}
	row := make([]string, len(a.Columns))
	for i := range min(len(row), len(values)) {
		row[i] = text(values[i])
	}
	return row, nil
}

// Close ends the answer; the statement is cancelled if it still runs.
func (a *Answer) Close() error { return a.body.Close() }

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// text is a value as users read it. Rows are lines, so line ends are written as in JSON.
func text(v json.RawMessage) string {
	var s string
	switch {
	case string(v) == "null":
		return "NULL"
	case json.Unmarshal(v, &s) == nil:
		return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\x1b", `\e`).Replace(s)
	}
	return string(v)
}
