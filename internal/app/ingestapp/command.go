package ingestapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/sqsqueue"
)

// Redriving are the settings of a function that moves dead letters on command.
type Redriving struct {
	QueueURL string `name:"ingest.dead-letter-queue-url" placeholder:"URL" help:"Dead-letter queue whose messages the command redrive moves to --ingest.queue-url. Default: the function takes no command." when:"The AWS stack sets it."`
}

// OnCommand returns the builder of a stage that moves dead letters to the queue of the URL to, as
// Redrive does, when the function is invoked with {"command": "redrive"}. It does nothing by
// itself, and sends no request before. Without a dead-letter queue it takes no command.
func OnCommand(s Redriving, to string) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		if s.QueueURL == "" {
			return process.Idle{}, nil
		}
		r := redriver{log: p.Logger}
		var err error
		if r.from, err = sqsqueue.Open(s.QueueURL, p.Registry); err == nil {
			r.to, err = sqsqueue.Open(to, p.Registry)
		}
		if err != nil {
			return nil, fmt.Errorf("ingest.dead-letter-queue-url and ingest.queue-url: %w", err)
		}
		return r, nil
	}
}

// redriver implements process.Commanded.
type redriver struct {
	process.Idle
	from, to *sqsqueue.Queue
	log      *slog.Logger
}

// command is the event of an invocation.
type command struct {
	Command           string `json:"command"`
	DryRun            bool   `json:"dry_run"`
	Max               int    `json:"max"`
	DiscardUnreadable bool   `json:"discard_unreadable"`
}

// redriven answers a command.
type redriven struct {
	Fates      []Fate   `json:"fates"`      // of the messages that it looked at
	Unreadable []string `json:"unreadable"` // why messages cannot be read: the first maxReasons
	Left       int      `json:"left"`       // messages of the dead-letter queue now, about
	Complete   bool     `json:"complete"`   // it has looked at all; else Max or the function's time was reached
	Error      string   `json:"error,omitempty"`
}

// maxReasons bounds an answer, which Lambda limits to 6 MB.
const maxReasons = 100

// Command implements process.Commanded. It ends before the function's deadline. A failure in the
// middle is part of the answer, so that the fates of the other messages are known.
func (s redriver) Command(ctx context.Context, event []byte) (any, error) {
	var c command
	d := json.NewDecoder(bytes.NewReader(event))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("read command: %w; there are dry_run, max and discard_unreadable", err)
	}
	switch {
	case c.Command != "redrive":
		return nil, fmt.Errorf("command: want redrive, got %q", c.Command)
	case c.Max < 0:
		return nil, fmt.Errorf("redrive: want max of 0 or more, got %d", c.Max)
	}
	r := &redrive{RedriveSettings: RedriveSettings{From: s.from, Discard: c.DiscardUnreadable && !c.DryRun, Max: c.Max}, seen: map[string]bool{}}
	if !c.DryRun {
		r.To = s.to
	}
	err := r.run(ctx)
	left, cerr := s.from.Count(ctx)
	if err = errors.Join(err, cerr); err != nil && len(r.found) == 0 {
		return nil, err
	}
	a := redriven{Fates: r.fates(), Unreadable: r.problems(), Left: left, Complete: r.empty}
	a.Unreadable = a.Unreadable[:min(len(a.Unreadable), maxReasons)]
	if err != nil {
		a.Error = err.Error()
	}
	s.log.InfoContext(ctx, "redriven", "dry_run", c.DryRun, "fates", a.Fates, "left", a.Left, "complete", a.Complete, "error", a.Error)
	return a, nil
}
