// Package flags turns a program's arguments, variables and settings file into its settings. The
// rules hold for every program of the project: a flag --a.some-name is the key a.some-name of the
// settings file and the variable PROMLAKE_A_SOME_NAME. An argument goes before the variable, the
// variable before the file, and the file before the default. An option, which belongs to one
// command alone, such as the format of its output, has only the flag. The grammar of a program
// consists of structs with the tags of package settings and of kong; what it holds before parsing
// are the defaults.
package flags

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// about are flags that print something and end the program.
type about struct {
	HelpAll helpAll          `name:"help-all" help:"Print all flags."`
	Version kong.VersionFlag `name:"version" help:"Print the version."`
}

// isSetting reports whether a flag has a variable and a key of the settings file. Options of one
// command have neither.
func isSetting(f *kong.Flag) bool { return len(f.Envs) > 0 }

// NewParser returns a parser for grammar, a pointer to a struct that holds the defaults.
func NewParser(name, description string, grammar any, options ...kong.Option) (*kong.Kong, error) {
	f := &file{Path: defaultFile()}
	options = append([]kong.Option{
		kong.Name(name),
		kong.Description(description),
		kong.Embed(f),
		kong.Embed(&about{}),
		kong.Vars{"version": telemetry.ReadBuild().String()},
		kong.Resolvers(f),
		kong.NamedMapper("bytes", textMapper("bytes")),
		kong.NamedMapper("period", textMapper("period")),
		kong.ConfigureHelp(helpOptions),
		kong.Help(printHelp),
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

// visit calls f for each flag of the node and its commands, and the node that has the flag.
func visit(n *kong.Node, f func(*kong.Node, *kong.Flag) error) error {
	for _, flag := range n.Flags {
		if err := f(n, flag); err != nil {
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

// shared are the flags of commands that say which server or data they are about. They have
// variables, as settings have.
var shared = []string{"listen", "store", "url", "token", "tenant"}

// isOption reports whether a flag is a field of a command itself, not of settings in it.
func isOption(n *kong.Node, f *kong.Flag) bool {
	if n.Type != kong.CommandNode || strings.Contains(f.Name, ".") || slices.Contains(shared, f.Name) {
		return false
	}
	for i := range n.Target.NumField() {
		if field := n.Target.Field(i); field.Type() == f.Target.Type() && field.Addr().Pointer() == f.Target.Addr().Pointer() {
			return true
		}
	}
	return false
}

// adopt gives a setting its environment variable, and a flag its field's present value as the
// default. Kong requires an enum to be required or to have a default in its tags. adopt makes a
// required one optional once it has this default.
func adopt(n *kong.Node, f *kong.Flag) error {
	switch f.Name {
	case "help", "help-all", "version":
		return nil
	}
	if !isOption(n, f) {
		f.Envs = []string{settings.Env(f.Name)}
		f.Tag.Envs = f.Envs
	}
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
