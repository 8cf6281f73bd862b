package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes of every program.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Streams are a program's input and output: answers go to Out, logs and errors to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Print writes a text to Out. An error names what the text is.
func (s Streams) Print(what, text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return fmt.Errorf("print %s: %w", what, err)
	}
	return nil
}

// Exit is an error of Run that ends the program with this code, after Run has printed the reason.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main parses args and calls the method Run of the chosen command, or of grammar itself if grammar
// has no commands. Run takes any of context.Context, Streams and Values, and returns an error. Main
// returns the exit code: 0, 1 for an error of Run (one line on stderr), 2 for wrong arguments. The
// first SIGINT or SIGTERM ends the context; a second one ends the program.
func Main(ctx context.Context, name, description string, grammar any, args []string, io Streams, options ...kong.Option) int {
	k, err := NewParser(name, description, grammar, append([]kong.Option{kong.Writers(io.Out, io.Err)}, options...)...)
	if err != nil {
		return report(io, name, err, exitError)
	}
	chosen, err := k.Parse(args)
	if err == nil {
		err = check(chosen)
	}
	if err != nil {
		return report(io, name, fmt.Errorf("%w (see %s --help)", err, name), exitUsage)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if err := runOf(chosen, ctx, io, values(chosen))(); err != nil {
		if code, ok := errors.AsType[Exit](err); ok {
			return int(code)
		}
		return report(io, name, err, exitError)
	}
	return exitOK
}

// runOf returns a call of the method Run of the chosen command, or of the grammar itself. Each
// parameter is the argument of its type. The call does not refer to the parser, whose memory is
// most of what a server would hold while it is idle.
func runOf(chosen *kong.Context, args ...any) func() error {
	node := cmp.Or(chosen.Selected(), chosen.Model.Node)
	run := node.Target.Addr().MethodByName("Run")
	in := make([]reflect.Value, run.Type().NumIn())
	for i := range in {
		for _, a := range args {
			if v := reflect.ValueOf(a); v.Type().AssignableTo(run.Type().In(i)) {
				in[i] = v
			}
		}
	}
	return func() error {
		err, _ := run.Call(in)[0].Interface().(error)
		return err
	}
}

// report writes err as one line.
func report(io Streams, name string, err error, code int) int {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	// An error of a write to stderr cannot be reported.
	_, _ = fmt.Fprintf(io.Err, "%s: error: %s\n", name, text)
	return code
}

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
	node := cmp.Or(ctx.Selected(), ctx.Model.Node)
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
