package ruleapp

import (
	"errors"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/rules/rulefn"
)

// Settings of the evaluation by a function. The tags are those of package settings.
type Settings struct {
	Scheduled bool   `name:"ruler.scheduled" negatable:"" default:"false" help:"Evaluate the rules of tenants at each event of a schedule. The function then writes segments." when:"The AWS stack sets it in the function that evaluates rules."`
	QueueURL  string `name:"ruler.queue-url" placeholder:"URL" help:"URL of the SQS FIFO queue to which the function sends rule groups beyond --ruler.max-rules-per-invocation, and from which such functions receive them." when:"The AWS stack sets it."`

	Rules rulefn.Settings `embed:""`
}

// Validate returns an error that names the flags of invalid settings.
func (s Settings) Validate() error {
	var alone error
	if s.QueueURL != "" && !s.Scheduled {
		alone = errors.New("ruler.queue-url: want --ruler.scheduled, too")
	}
	return errors.Join(settings.Check(s), s.Rules.Validate(), alone)
}
