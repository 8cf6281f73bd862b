package lambda

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrEvent reports an event that the function does not take.
var ErrEvent = errors.New("event not taken")

// event is one event, recognised by its shape. Byte slices are part of the payload.
type event struct {
	kind     Event
	request  httpEvent // HTTPAPI and FunctionURL
	messages []Message // SQS
	at       time.Time // Schedule
}

// shape is what tells events apart, gathered while the payload is read.
type shape struct {
	version    string // of HTTP events; "0" in those of EventBridge
	source     string // of EventBridge events, such as aws.events
	detailType string
	time       string
	records    string // eventSource of the first record
	rest       bool   // has httpMethod: payload format 1.0
	keys       []string
}

// maxKeys is how many member names an error about an unknown event shows.
const maxKeys = 8

// parse reads a payload.
func parse(payload []byte) (event, error) {
	var e event
	var sh shape
	s := &scanner{b: payload}
	if err := s.object(func(key string) error { return e.member(s, key, &sh) }); err != nil {
		return event{}, fmt.Errorf("read event: %w", err)
	}
	if err := s.end(); err != nil {
		return event{}, fmt.Errorf("read event: %w", err)
	}
	return e, e.classify(sh)
}

// member reads one member of the outermost object.
func (e *event) member(s *scanner, key string, sh *shape) (err error) {
	if len(sh.keys) < maxKeys {
		sh.keys = append(sh.keys, key)
	}
	switch key {
	case "version":
		sh.version, err = s.optional()
	case "source":
		sh.source, err = s.optional()
	case "detail-type":
		sh.detailType, err = s.optional()
	case "time":
		sh.time, err = s.optional()
	case "httpMethod":
		sh.rest = true
		err = s.skip()
	case "Records":
		e.messages, err = records(s, &sh.records)
	default:
		err = e.request.member(s, key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// Values by which EventBridge's events are known.
const (
	scheduledEvent  = "Scheduled Event"
	sourceRule      = "aws.events"
	sourceScheduler = "aws.scheduler"
	sourceSQS       = "aws:sqs"
)

// classify decides what the event is.
func (e *event) classify(sh shape) error {
	switch {
	case e.messages != nil:
		e.kind = SQS
	case sh.records != "":
		return fmt.Errorf("%w: records of %s", ErrEvent, sh.records)
	case sh.version == "2.0" && e.request.Context.HTTP.Method != "":
		e.kind = HTTPAPI
		// Payloads of the two differ in nothing else that is sure.
		if strings.Contains(e.request.Context.DomainName, ".lambda-url.") {
			e.kind = FunctionURL
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

// takes names the kinds of events that there are handlers for.
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
	if kinds == nil {
		return "no events"
	}
	return strings.Join(kinds, ", ")
}

// refuse says what the function takes when it does not take e, or when err says why e is unknown.
func (h Handlers) refuse(e event, err error) error {
	switch {
	case errors.Is(err, ErrEvent):
		return fmt.Errorf("%w; this function takes %s", err, h.takes())
	case err != nil:
		return err
	case h.has(e.kind):
		return nil
	}
	return fmt.Errorf("%w: %s; this function takes %s", ErrEvent, e.kind, h.takes())
}

func (h Handlers) has(e Event) bool {
	switch e {
	case SQS:
		return h.Messages != nil
	case Schedule:
		return h.Schedule != nil
	default:
		return h.HTTP != nil
	}
}
