package ingest

import (
	"errors"
	"time"
)

// Description is what a message of the queue holds.
type Description struct {
	Tenant     string
	Received   time.Time // when its request came
	Floats     int
	Histograms int
	Exemplars  int
	Bytes      int // of its columns, unpacked
}

// Describe reads a message as a consumer does, but for limits that are the consumer's. Its error says why no consumer can read it.
func Describe(body string) (Description, error) {
	e, err := parseEnvelope(body)
	if err != nil {
		return Description{}, err
	}
	plain := buffers.Get().(*buffer)
	defer plain.release()
	if err := e.unpack(plain); err != nil {
		return Description{}, err
	}
	set := DefaultSettings()
	d := &decoder{limits: &set.Limits}
	d.beginPacked(plain.b, set.MaxInflightBytes)
	b, err := d.unpack(plain.b, e.holds, newGeneration(0, nil), set.Limits.horizon(e.received))
	if errors.Is(err, errUnreadable) {
		return Description{}, err
	}
	if err == nil {
		b.release()
	}
	return Description{
		Tenant: e.tenant, Received: e.received, Floats: e.holds.floats, Histograms: e.holds.hists, Exemplars: e.holds.exemplars, Bytes: e.bytes,
	}, nil
}
