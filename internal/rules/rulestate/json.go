package rulestate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Encode returns the document of a state. Equal states have equal bytes.
func Encode(g *Group) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(g); err != nil {
		return nil, fmt.Errorf("encode rule state: %w", err)
	}
	return checksum.Append(b.Bytes())
}

// ErrState reports bytes that are no state of a group, or one of another version.
var ErrState = errors.New("decode rule state")

// Decode reads a document. Errors: ErrState; for damaged bytes also checksum.ErrDamaged.
func Decode(b []byte) (*Group, error) {
	g := &Group{}
	if err := checksum.Unmarshal(b, g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if g.Version != Version {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrState, g.Version, Version)
	}
	for i, r := range g.Rules {
		for j, a := range r.Alerts {
			if a.State != Pending && a.State != Firing && a.State != Resolved {
				return nil, fmt.Errorf("%w: rule %d: unknown state %q of an alert", ErrState, i, a.State)
			}
			if j > 0 && labels.Compare(r.Alerts[j-1].Labels, a.Labels) >= 0 {
				return nil, fmt.Errorf("%w: rule %d: the alerts are not in ascending order", ErrState, i)
			}
		}
	}
	if (g.Outbox.Count > 0) != (len(g.Outbox.Samples) > 0) {
		return nil, fmt.Errorf("%w: the outbox has samples without their number, or a number without samples", ErrState)
	}
	return g, nil
}
