// Command query-fn runs the query stage as a separate process or as an AWS Lambda function: it
// evaluates PromQL over the objects of a store, and the rules of tenants on a schedule. It reads
// the same PROMLAKE_* variables and flags as `promlake serve`. Any number of instances may run over
// one store.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/pageapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/app/ruleapp"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/rules/ruler"
)

const (
	program     = "query-fn"
	description = "Promlake's query stage: answers the Prometheus HTTP API from the segments in the store."
)

// cli is the grammar of the command line.
type cli struct {
	Process process.Settings   `embed:"" group:"Process"`
	Query   queryapp.Settings  `embed:"" group:"Query"`
	Tenants admission.Settings `embed:"" group:"Query"`
	Rules   ruleapp.Settings   `embed:"" group:"Rules"`
	Ruler   ruler.Settings     `embed:"" group:"Rules"`
	Page    pageapp.Settings   `embed:"" group:"Page"`
	Lambda  lambda.Settings    `embed:"" group:"AWS Lambda"`
}

func newCLI() *cli {
	c := settings.Default[cli]()
	c.Process = process.SettingsOf(program)
	c.Process.CheckStore = false // it may have no right to write
	c.Ruler.Enabled = false      // it may have no right to write
	c.Lambda.Streaming = true    // answers outgrow Lambda's payloads, and the function's URL is there for them
	return &c
}

// Run serves the stage until ctx, or the function's environment, ends.
func (c *cli) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	c.Process.Flags = vs
	c.Query.Tenants = c.Tenants
	c.Query.KeepUsage = true
	if lambda.Running() {
		memory := lambda.MemoryBytes()
		c.Query = queryapp.ForFunction(c.Query, memory, vs)
		c.Process.MemoryLimit = cmp.Or(c.Process.MemoryLimit, queryapp.HeapBytes(c.Query.Query, memory))
	}
	if err := errors.Join(c.Rules.Validate(), c.Ruler.Validate()); err != nil {
		return fmt.Errorf("check settings: %w", err)
	}
	return process.Serve(ctx, c.Process, c.Lambda, io.Err, c.builders()...)
}

// builders make the stages of the process.
func (c *cli) builders() []process.Builder {
	c.Query.API.Ruler, c.Query.API.Application = c.Ruler.Enabled, c.Ruler.Application
	c.Rules.Rules.Limits = c.Ruler.Limits
	c.Rules.Rules.Templates = c.Ruler.Templates
	c.Rules.Rules.Templates.Queries = c.Query.API.Expressions
	rules := ruleapp.New(c.Rules)
	c.Query.API.RulesURL = c.Rules.APIURL
	if c.Rules.Scheduled {
		c.Query.API.Rules = rules.Rules
	}
	all := []process.Builder{queryapp.New(c.Query, rules.ReadFrom), pageapp.New(c.Page)}
	if c.Ruler.Enabled {
		all = append(all, ruleapp.Editing(c.Ruler, c.Query.API.Expressions, func() {}))
	}
	if c.Rules.Scheduled {
		all = append(all, rules.Build)
	}
	return all
}

func main() {
	io := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], io))
}
