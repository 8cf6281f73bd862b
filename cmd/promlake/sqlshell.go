package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/peterh/liner"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/sqlapp"
)

// shell runs an interactive shell on the terminal.
func (c *sqlCmd) shell(ctx context.Context, streams flags.Streams, vs flags.Values) (err error) {
	out, ok := streams.Out.(*os.File)
	switch {
	case !ok || !isTerminal(out):
		return errors.New("there is no query; the shell, which needs none, runs on a terminal only")
	case c.URL == "" && c.Store == "":
		return errors.New("the shell needs --url or --store: the server or the store that it asks")
	case len(c.Param) > 0:
		return errors.New("--param belongs to a query")
	}
	// Ctrl-C ends the context of the program; in the shell it cancels a statement only, and without
	// one it does nothing.
	unused := make(chan os.Signal, 1)
	signal.Notify(unused, os.Interrupt)
	defer signal.Stop(unused)
	ctx, leave := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
	defer leave()
	b := newBar(streams.Err)
	if b != nil {
		streams.Err = b // the log scrolls by above the bar
	}
	s := source{c.URL, c.Store, c.Tenant, c.Token, c.Log, c.Query}
	client, done, err := s.client(ctx, streams, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ask := func(ctx context.Context, statement string) (*sqlapp.Answer, error) {
		resp, err := c.send(ctx, client, s.address(), statement, "json")
		if err != nil {
			return nil, err
		}
		return sqlapp.NewAnswer(resp.Body)
	}
	usual, _ := liner.TerminalMode() // a terminal whose mode is not known shows no pages
	t := &terminal{State: liner.NewLiner(), history: c.History, usual: usual}
	t.editing, _ = liner.TerminalMode()
	t.SetCtrlCAborts(true)
	t.SetTabCompletionStyle(liner.TabPrints)
	names := sync.OnceValue(func() []string { return sqlapp.Names(context.Background(), ask) })
	t.SetWordCompleter(func(line string, position int) (string, []string, string) {
		return sqlapp.Complete(names(), line, position)
	})
	if below, ok := strings.CutPrefix(c.History, "~/"); ok {
		t.history = ""
		if home, err := os.UserHomeDir(); err == nil {
			t.history = filepath.Join(home, below)
		}
	}
	if f, err := os.Open(t.history); err == nil {
		_, _ = t.ReadHistory(f) // a history that cannot be read is as good as none
		_ = f.Close()
	}
	defer func() { err = errors.Join(err, t.close()) }()
	// The URL is shown without its parameters, which may hold credentials.
	asked, _, _ := strings.Cut(c.URL+c.Store, "?")
	if _, err := fmt.Fprintln(streams.Out, `SQL over `+asked+`. \? lists the commands.`); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	sh := sqlapp.Shell{Terminal: t, Ask: ask, Out: streams.Out, Cancellable: func(ctx context.Context) (context.Context, context.CancelFunc) {
		return signal.NotifyContext(ctx, os.Interrupt)
	}, Page: pager{t, out}.show}
	if b != nil {
		sh.Busy = b.busy
	}
	return sh.Run(ctx)
}

// terminal is a sqlapp.Terminal with a history in a file.
type terminal struct {
	*liner.State
	history string // "": none is kept

	usual, editing liner.ModeApplier // the modes of the terminal; nil: not known
}

// Line implements sqlapp.Terminal.
func (t *terminal) Line(prompt string) (string, error) {
	line, err := t.Prompt(prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", sqlapp.ErrAborted
	}
	return line, err
}

// Remember implements sqlapp.Terminal.
func (t *terminal) Remember(line string) { t.AppendHistory(line) }

// close gives the terminal back and writes the history, which only the user can read.
func (t *terminal) close() error {
	if err := t.State.Close(); err != nil {
		return fmt.Errorf("restore the terminal: %w", err)
	}
	if t.history == "" {
		return nil
	}
	f, err := os.OpenFile(t.history, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	_, err = t.WriteHistory(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}
