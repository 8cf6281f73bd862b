package message

import (
	"errors"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// maxDescribed is the memory (bytes) that Describe may take.
const maxDescribed = 256 << 20

// Describe reads a whole message as a consumer does, but without limits, which belong to the
// consumer. Its error wraps ErrUnreadable and states why no consumer can read the message.
func Describe(body string) (*Message, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	limits := remotewrite.DefaultLimits()
	b, err := m.Decode(remotewrite.NewGeneration(0), &limits, maxDescribed)
	if errors.Is(err, ErrUnreadable) {
		return nil, err
	}
	if err == nil {
		b.Release()
	}
	return m, nil
}
