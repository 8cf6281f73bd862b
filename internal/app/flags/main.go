package flags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	chosen.BindTo(ctx, (*context.Context)(nil))
	if err := chosen.Run(io, values(chosen)); err != nil {
		if code, ok := errors.AsType[Exit](err); ok {
			return int(code)
		}
		return report(io, name, err, exitError)
	}
	return exitOK
}

// report writes err as one line.
func report(io Streams, name string, err error, code int) int {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	// An error of a write to stderr cannot be reported.
	_, _ = fmt.Fprintf(io.Err, "%s: error: %s\n", name, text)
	return code
}
