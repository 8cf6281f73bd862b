package flags

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/promlake/promlake/internal/base/settings"
)

// Source is where a flag's value comes from.
type Source string

// The sources, in the order of precedence.
const (
	CommandLine Source = "flag"
	Environment Source = "environment"
	File        Source = "file"
	Default     Source = "default"
)

// Value is one flag as the program runs with it.
type Value struct {
	Name, Text string
	Default    string
	Source     Source
	Hidden     bool // Text is not all of the value
}

// Values are a program's flags, sorted by name. A URL has neither its parameters nor its user,
// either of which may be a credential. A flag with the tag secret:"" shows only whether it is set.
type Values []Value

// values reads the flags of the chosen command.
func values(chosen *kong.Context) Values {
	sources := map[*kong.Flag]Source{}
	for _, p := range chosen.Path {
		if p.Flag != nil && p.Resolved {
			sources[p.Flag] = File
		} else if p.Flag != nil {
			sources[p.Flag] = CommandLine
		}
	}
	var out Values
	for _, f := range chosen.Flags() {
		if !isSetting(f) {
			continue
		}
		v := Value{Name: f.Name, Default: strings.ReplaceAll(f.Default, "$$", "$"), Source: cmp.Or(sources[f], Default)}
		if _, ok := os.LookupEnv(settings.Env(f.Name)); ok && v.Source == Default {
			v.Source = Environment
		}
		v.Text, v.Hidden = public(text(f), f.Tag.Has("secret"))
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Value) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// public returns what anybody may see of a value, and whether that is less than all.
func public(text string, secret bool) (seen string, hidden bool) {
	if secret && text != "" {
		return "<secret>", true
	}
	if !strings.Contains(text, "://") {
		return text, false
	}
	seen, _, _ = strings.Cut(text, "?")
	if u, err := url.Parse(seen); err == nil && u.User != nil {
		u.User = nil
		seen = u.String()
	}
	return seen, seen != text
}

// Map returns the values by name.
func (vs Values) Map() map[string]string {
	m := make(map[string]string, len(vs))
	for _, v := range vs {
		m[v.Name] = v.Text
	}
	return m
}

// YAML returns the values as a settings file.
func (vs Values) YAML() string {
	var b strings.Builder
	for _, v := range vs {
		fmt.Fprintf(&b, "%s: %s\n", v.Name, strconv.Quote(v.Text))
	}
	return b.String()
}

// File returns the values as a settings file that names the source of each. A value that is not all
// there is a comment.
func (vs Values) File() string {
	var b strings.Builder
	for _, v := range vs {
		if v.Hidden {
			b.WriteString("# ")
		}
		fmt.Fprintf(&b, "%s: %s  # %s\n", v.Name, scalar(v.Text), v.Source)
	}
	return b.String()
}

// Defaults returns the defaults of all flags as a settings file.
func (vs Values) Defaults() string {
	var b strings.Builder
	for _, v := range vs {
		fmt.Fprintf(&b, "%s: %s\n", v.Name, scalar(v.Default))
	}
	return b.String()
}

// plain matches texts that YAML reads as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9_./,-]*(:[A-Za-z0-9_./,-]+)*$`)

// scalar writes a text as a scalar of YAML.
func scalar(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

// Given reports whether the operator gave the flag a value, be it the default.
func (vs Values) Given(name string) bool {
	return slices.ContainsFunc(vs, func(v Value) bool { return v.Name == name && v.Source != Default })
}

// Replace sets the field of a flag unless the operator gave it a value.
func Replace[T any](vs Values, name string, field *T, value T) {
	if !vs.Given(name) {
		*field = value
	}
}

// Lower sets the field of a flag to most if it is more, unless the operator gave it a value.
func Lower[T cmp.Ordered](vs Values, name string, field *T, most T) {
	if !vs.Given(name) {
		*field = min(*field, most)
	}
}
