package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

var helpOptions = kong.HelpOptions{Compact: true, WrapUpperBound: 120}

// helpAll is --help-all: help with every flag.
type helpAll bool

// BeforeReset implements kong's hook that runs before other flags are read.
func (helpAll) BeforeReset(ctx *kong.Context) error {
	options := helpOptions
	options.ValueFormatter = kong.DefaultHelpValueFormatter
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	ctx.Kong.Exit(0)
	return nil
}

// IgnoreDefault keeps kong from running the hook for the default.
func (helpAll) IgnoreDefault() {}

// printHelp prints help without names of variables and without settings that few people change: of
// these it prints each group's name, number and first words. A setting of a group is printed if its
// name has no dot, or if it has the tag basic:"".
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	type group struct {
		title  string
		hidden int
		words  []string
	}
	var groups []*group
	for _, f := range node.Flags {
		if f.Group == nil || !isSetting(f) || f.Hidden || f.Tag.Has("basic") || !strings.Contains(f.Name, ".") {
			continue
		}
		f.Hidden = true
		i := slices.IndexFunc(groups, func(g *group) bool { return g.title == f.Group.Title })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{title: f.Group.Title})
		}
		word := f.Name[:strings.Index(f.Name, ".")+1] + "…"
		if groups[i].hidden++; !slices.Contains(groups[i].words, word) {
			groups[i].words = append(groups[i].words, word)
		}
	}
	options.ValueFormatter = func(v *kong.Value) string { return v.Help }
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || groups == nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nFurther settings, which %s --help-all prints with the names of variables:\n", node.FullPath())
	for _, g := range groups {
		fmt.Fprintf(&b, "  %-19s %3d: %s\n", g.title, g.hidden, strings.Join(g.words, ", "))
	}
	_, err := fmt.Fprint(ctx.Stdout, b.String())
	return err
}
