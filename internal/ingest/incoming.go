package ingest

import (
	"net/http"
	"time"
)

// incoming is a request that one goroutine takes to the end. It holds its share of MaxInflightBytes until it is released.
type incoming struct {
	tenant  *tenantIngest
	version protocol
	came    time.Time
	batch   *batch
}

// take reads a request's body and decodes it.
func (s *Stage) take(w http.ResponseWriter, r *http.Request, version protocol, t *tenantIngest) (*incoming, error) {
	in := &incoming{tenant: t, version: version, came: s.now().Truncate(time.Millisecond)}
	plain := buffers.Get().(*buffer)
	defer plain.release()
	c, err := s.readBody(w, r, t.id, plain)
	if err != nil {
		return nil, err
	}
	if in.batch, err = s.read(version, plain.b, t, in.came, c); err != nil {
		c.release()
		return nil, err
	}
	return in, nil
}

func (in *incoming) release() { in.batch.release() }
