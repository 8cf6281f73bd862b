package lambda

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/jsontext"
)

// ErrEvent reports an event that the function does not support.
var ErrEvent = errors.New("event is not supported")

// event is a decoded event. Byte slices are part of the payload.
type event struct {
	kind     Event
	request  httpEvent // HTTPAPI, FunctionURL and Direct
	messages []Message // SQS
	at       time.Time // Schedule
}

// shape holds the members that identify the kind of an event, collected while the payload is read.
type shape struct {
	version    string // of HTTP events; "0" in those of EventBridge
	source     string // of EventBridge events, such as aws.events
	detailType string
	time       string
	command    string
	records    string // eventSource of the first record
	rest       bool   // has httpMethod: payload format 1.0
	keys       []string
}

// maxKeys is the number of member names in an error about an unknown event.
const maxKeys = 8

// parse decodes a payload.
func parse(payload []byte) (event, error) {
	var e event
	var sh shape
	p := jsontext.New(payload)
	err := p.Object(func(key string) error { return e.member(p, key, &sh) })
	if err == nil {
		err = p.End()
	}
	if err != nil {
		return event{}, fmt.Errorf("read event: %w", err)
	}
	return e, e.classify(sh)
}

// member decodes one member of the top-level object.
func (e *event) member(p *jsontext.Parser, key string, sh *shape) (err error) {
	if len(sh.keys) < maxKeys {
		sh.keys = append(sh.keys, strings.Clone(key))
	}
	switch key {
	case "version":
		sh.version, err = text(p)
	case "source":
		sh.source, err = text(p)
	case "detail-type":
		sh.detailType, err = text(p)
	case "time":
		sh.time, err = text(p)
	case "command":
		sh.command, err = text(p)
	case "httpMethod":
		sh.rest = true
		err = p.Skip()
	case "Records":
		e.messages, err = records(p, &sh.records)
	default:
		err = e.request.member(p, key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// text reads a string or null, and returns "" for null.
func text(p *jsontext.Parser) (s string, err error) {
	if p.Peek() == '"' {
		return p.String()
	}
	return s, p.Decode(&s)
}

// Values that identify EventBridge's events.
const (
	scheduledEvent  = "Scheduled Event"
	sourceRule      = "aws.events"
	sourceScheduler = "aws.scheduler"
	sourceSQS       = "aws:sqs"
)

// classify determines the kind of the event.
func (e *event) classify(sh shape) error {
	switch {
	case e.messages != nil:
		e.kind = SQS
	case sh.records != "":
		return fmt.Errorf("%w: records of %s", ErrEvent, sh.records)
	case sh.command != "":
		e.kind = Command
	case sh.version == "2.0" && e.request.Context.HTTP.Method != "":
		// The domain name is the only reliable difference.
		switch domain := e.request.Context.DomainName; {
		case domain == directDomain:
			e.kind = Direct
		case strings.Contains(domain, ".lambda-url."):
			e.kind = FunctionURL
		default:
			e.kind = HTTPAPI
		}
	case sh.rest:
		return fmt.Errorf("%w: an HTTP request in payload format 1.0: set the integration's payload format version to 2.0", ErrEvent)
	case sh.detailType == scheduledEvent && (sh.source == sourceRule || sh.source == sourceScheduler):
		e.kind = Schedule
		at, err := time.Parse(time.RFC3339, sh.time)
		if err != nil {
			return fmt.Errorf("read event: time: %w", err)
		}
		e.at = at
	case sh.source != "":
		return fmt.Errorf("%w: %q of %q from EventBridge", ErrEvent, sh.detailType, sh.source)
	default:
		return fmt.Errorf("%w: an object with the members %q", ErrEvent, sh.keys)
	}
	return nil
}

// takes lists the kinds of events that have a handler.
func (h Handlers) takes() string {
	var kinds []string
	if h.HTTP != nil {
		kinds = append(kinds, "HTTP requests (API Gateway HTTP API with payload format 2.0, Function URL)")
	}
	if h.Messages != nil {
		kinds = append(kinds, "SQS messages")
	}
	if h.Schedule != nil {
		kinds = append(kinds, "schedules (EventBridge rule, EventBridge Scheduler)")
	}
	if h.Command != nil {
		kinds = append(kinds, `commands such as {"command":"redrive"}`)
	}
	if kinds == nil {
		return "no events"
	}
	return strings.Join(kinds, ", ")
}

// refuse returns an error that lists the supported events if e has no handler or if its kind is
// unknown.
func (h Handlers) refuse(e event, err error) error {
	switch {
	case errors.Is(err, ErrEvent):
		return fmt.Errorf("%w; this function supports %s", err, h.takes())
	case err != nil:
		return err
	case h.has(e.kind):
		return nil
	}
	return fmt.Errorf("%w: %s; this function supports %s", ErrEvent, e.kind, h.takes())
}

func (h Handlers) has(e Event) bool {
	switch e {
	case SQS:
		return h.Messages != nil
	case Schedule:
		return h.Schedule != nil
	case Command:
		return h.Command != nil
	default:
		return h.HTTP != nil
	}
}
