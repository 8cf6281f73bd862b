// Package flags turns a program's arguments, variables and settings file into its settings. The
// rules hold for every program of the project: a flag --a.some-name is the key a.some-name of the
// settings file and the variable PROMLAKE_A_SOME_NAME. An argument goes before the variable, the
// variable before the file, and the file before the default. The grammar of a program consists of
// structs with the tags of package settings and of kong; what it holds before parsing are the
// defaults.
package flags

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// EnvPrefix begins the name of every environment variable.
const EnvPrefix = "PROMLAKE_"

// Env names the environment variable of a flag.
func Env(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// about are flags that print something and end the program. They are no settings.
type about struct {
	Version kong.VersionFlag `name:"version" help:"Print the version."`
}

// isSetting reports whether a flag has a variable, a key of the settings file and a value to show.
func isSetting(name string) bool { return name != "help" && name != "version" }

// NewParser returns a parser for grammar, a pointer to a struct that holds the defaults.
func NewParser(name, description string, grammar any, options ...kong.Option) (*kong.Kong, error) {
	f := &file{}
	options = append([]kong.Option{
		kong.Name(name),
		kong.Description(description),
		kong.Embed(f),
		kong.Embed(&about{}),
		kong.Vars{"version": telemetry.ReadBuild().String()},
		kong.Resolvers(f),
		kong.NamedMapper("bytes", textMapper("bytes")),
		kong.NamedMapper("period", textMapper("period")),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.PostBuild(func(k *kong.Kong) error { return visit(k.Model.Node, adopt) }),
	}, options...)
	k, err := kong.New(grammar, options...)
	if err != nil {
		return nil, fmt.Errorf("build parser of %s: %w", name, err)
	}
	return k, nil
}

// textMapper reads the values of one type tag.
type textMapper string

// Decode implements kong.Mapper.
func (typ textMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto(string(typ), &text); err != nil {
		return err
	}
	return settings.Parse(text, string(typ), target)
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

// adopt gives a flag its environment variable, and its field's present value as the default. Kong
// requires an enum to be required or to have a default in its tags. adopt makes a required one
// optional once it has this default.
func adopt(f *kong.Flag) error {
	if !isSetting(f.Name) {
		return nil
	}
	f.Envs = []string{Env(f.Name)}
	f.Tag.Envs = f.Envs
	if f.Target.IsZero() && !f.HasDefault {
		return nil
	}
	// Kong expands ${…} in defaults; $$ is a dollar sign.
	f.Default, f.HasDefault = strings.ReplaceAll(text(f), "$", "$$"), true
	f.Tag.Default, f.Tag.HasDefault = f.Default, true
	f.Required, f.Tag.Required = false, false
	return nil
}

// text writes a flag's present value as its argument would be.
func text(f *kong.Flag) string { return settings.Format(f.Target, f.Tag.Type) }

// check reports the flags of the chosen command that were given a value outside of their limits.
func check(chosen *kong.Context) error {
	for _, f := range chosen.Flags() {
		if err := settings.CheckGiven(f.Tag, f.Target); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	return nil
}
