package flags

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// Value is one flag as the program runs with it.
type Value struct{ Name, Text string }

// Values are a program's flags, sorted by name. A URL is told without its parameters, which may hold credentials, and of a flag with the tag
// secret:"" only that it is set.
type Values []Value

// values reads the flags of the chosen command.
func values(chosen *kong.Context) (Values, error) {
	var out Values
	for _, f := range chosen.Flags() {
		if f.Name == "help" {
			continue
		}
		text, err := format(f)
		if err != nil {
			return nil, err
		}
		if f.Tag.Has("secret") && text != "" {
			text = "<secret>"
		}
		if strings.Contains(text, "://") {
			text, _, _ = strings.Cut(text, "?")
		}
		out = append(out, Value{Name: f.Name, Text: text})
	}
	slices.SortFunc(out, func(a, b Value) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Map returns the values by name.
func (vs Values) Map() map[string]string {
	m := make(map[string]string, len(vs))
	for _, v := range vs {
		m[v.Name] = v.Text
	}
	return m
}

// YAML returns the values as a YAML mapping of strings.
func (vs Values) YAML() string {
	var b strings.Builder
	for _, v := range vs {
		fmt.Fprintf(&b, "%s: %s\n", v.Name, strconv.Quote(v.Text))
	}
	return b.String()
}
