package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/aws/sqsqueue"
)

type redriveCmd struct {
	From              string `name:"from" placeholder:"URL" required:"" help:"Dead-letter queue."`
	To                string `name:"to" placeholder:"URL" help:"Queue that the messages go back to: that of --ingest.queue-url."`
	DryRun            bool   `name:"dry-run" help:"Only list what is there. Every listing counts as a delivery of the messages."`
	Max               int    `name:"max" placeholder:"N" help:"Stop after so many messages. Default: all."`
	DiscardUnreadable bool   `name:"discard-unreadable" help:"Delete the messages that no consumer can read. Default: they stay."`
}

// Run moves dead letters back and prints what became of each, also when some of it failed.
func (c *redriveCmd) Run(ctx context.Context, io flags.Streams) error {
	if c.To == "" && !c.DryRun {
		return errors.New("move dead letters: want --to URL, or --dry-run")
	}
	if c.To == c.From {
		return errors.New("move dead letters: --from and --to are one queue")
	}
	if c.Max < 0 {
		return fmt.Errorf("move dead letters: want --max of 0 or more, got %d", c.Max)
	}
	from, err := sqsqueue.Open(c.From, nil)
	if err != nil {
		return err
	}
	set := ingestapp.RedriveSettings{From: from, Discard: c.DiscardUnreadable && !c.DryRun, Max: c.Max}
	if !c.DryRun {
		if set.To, err = sqsqueue.Open(c.To, nil); err != nil {
			return err
		}
	}
	text, err := ingestapp.Redrive(ctx, set, time.Now)
	return errors.Join(err, io.Print("dead letters", text))
}
