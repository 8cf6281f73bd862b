package ingest

import (
	"errors"
	"fmt"
	"time"
)

// Description is what a message of the queue holds.
type Description struct {
	Tenant     string
	Received   time.Time // when its request came
	Floats     int
	Histograms int
	Exemplars  int
	Bytes      int // of the protobuf message
}

// maxDescribed bounds the memory that Describe sets aside for a message, in bytes.
const maxDescribed = 256 << 20

// Describe reads a message as a consumer does, but for limits that are the consumer's. Its error says why no consumer can read it.
func Describe(body string) (Description, error) {
	e, err := parseEnvelope(body)
	if err != nil {
		return Description{}, err
	}
	if e.bytes > maxDescribed {
		return Description{}, fmt.Errorf("%w: it claims %d bytes, more than %d", errUnreadable, e.bytes, maxDescribed)
	}
	plain := buffers.Get().(*buffer)
	defer plain.release()
	if err := e.unpack(plain); err != nil {
		return Description{}, err
	}
	limits := DefaultSettings().Limits
	d := &decoder{limits: &limits, maxRoom: maxDescribed, quiet: true}
	b, err := d.decode(e.version, plain.b, newGeneration(0, nil), limits.horizon(e.received))
	if errors.Is(err, errMalformed) {
		return Description{}, err
	}
	if err == nil {
		b.release()
	}
	return Description{
		Tenant: e.tenant, Received: e.received, Floats: e.accepted.floats, Histograms: e.accepted.hists, Exemplars: e.accepted.exemplars, Bytes: e.bytes,
	}, nil
}
