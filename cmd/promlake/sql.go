package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/sqlapp"
)

type sqlCmd struct {
	SQL string `arg:"" help:"One query, or - to read it from the standard input."`

	Format string `name:"format" default:"csv" enum:"csv,json" help:"How the result is printed: ${enum}."`
	Memory int64  `name:"memory-limit" type:"bytes" default:"1GiB" min:"1" help:"DuckDB's memory."`
}

// Run runs the query and prints its result.
func (c *sqlCmd) Run(ctx context.Context, streams flags.Streams) error {
	text := c.SQL
	if text == "-" {
		b, err := io.ReadAll(os.Stdin)
		if err != nil {
			return fmt.Errorf("read the query: %w", err)
		}
		text = string(b)
	}
	return sqlapp.Run(ctx, sqlapp.Settings{Format: c.Format, MemoryLimitBytes: c.Memory}, text, streams.Out)
}
