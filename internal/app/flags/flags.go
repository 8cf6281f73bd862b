// Package flags turns a program's arguments and PROMLAKE_* variables into its settings. The rules hold for every program of
// the project: a flag --a.some-name reads PROMLAKE_A_SOME_NAME where the argument is missing, and its default is what
// the settings struct held before parsing, so that defaults are written once, in code.
package flags

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/alecthomas/units"
)

// EnvPrefix begins the name of every environment variable.
const EnvPrefix = "PROMLAKE_"

// Env names the environment variable of a flag.
func Env(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// NewParser returns a parser for grammar, a pointer to a struct with kong's tags that already holds the defaults. Fields with
// `type:"bytes"` take sizes such as 64MiB or plain numbers of bytes.
func NewParser(name, description string, grammar any, options ...kong.Option) (*kong.Kong, error) {
	options = append([]kong.Option{
		kong.Name(name),
		kong.Description(description),
		kong.NamedMapper("bytes", bytesMapper{}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.PostBuild(func(k *kong.Kong) error { return visit(k.Model.Node, adopt) }),
	}, options...)
	k, err := kong.New(grammar, options...)
	if err != nil {
		return nil, fmt.Errorf("build parser of %s: %w", name, err)
	}
	return k, nil
}

// visit calls f for each flag of the node and its commands.
func visit(n *kong.Node, f func(*kong.Flag) error) error {
	for _, flag := range n.Flags {
		if err := f(flag); err != nil {
			return err
		}
	}
	for _, child := range n.Children {
		if err := visit(child, f); err != nil {
			return err
		}
	}
	return nil
}

// adopt gives a flag its variable, and its field's present value as the default. Kong wants enums to be required or to have a default
// already in their tags; those that are required stop being so here.
func adopt(f *kong.Flag) error {
	if f.Name == "help" {
		return nil
	}
	f.Envs = []string{Env(f.Name)}
	f.Tag.Envs = f.Envs
	if f.HasDefault || f.Target.IsZero() {
		return nil
	}
	text, err := format(f)
	if err != nil {
		return err
	}
	// Kong expands ${…} in defaults; $$ is a dollar sign.
	f.Default, f.HasDefault = strings.ReplaceAll(text, "$", "$$"), true
	f.Tag.Default, f.Tag.HasDefault = f.Default, true
	f.Required, f.Tag.Required = false, false
	return nil
}

// format writes a flag's present value as its argument would be.
func format(f *kong.Flag) (string, error) {
	v := f.Target
	if f.Tag.Type == "bytes" {
		return formatBytes(v.Int()), nil
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return shortDuration(x), nil
	case []string:
		return strings.Join(x, ","), nil
	case []TenantPeriod:
		return joinStrings(x), nil
	case fmt.Stringer:
		return x.String(), nil
	}
	switch v.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return fmt.Sprint(v.Interface()), nil
	default:
		return "", fmt.Errorf("flag --%s: no text for a default of type %s", f.Name, v.Type())
	}
}

func joinStrings[T fmt.Stringer](xs []T) string {
	texts := make([]string, len(xs))
	for i, x := range xs {
		texts[i] = x.String()
	}
	return strings.Join(texts, ",")
}

// shortDuration is time.Duration's text without zero minutes and seconds at its end: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func formatBytes(n int64) string {
	if n%(1<<10) != 0 {
		return fmt.Sprint(n)
	}
	return units.Base2Bytes(n).String()
}
