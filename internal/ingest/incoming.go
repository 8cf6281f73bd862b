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
	plain   *buffer // the message, decompressed
	batch   *batch
	done    func()
}

// take reads a request's body and decodes it.
func (s *Stage) take(r *http.Request, version protocol, t *tenantIngest) (*incoming, error) {
	in := &incoming{tenant: t, version: version, came: s.now().Truncate(time.Millisecond), plain: buffers.Get().(*buffer)}
	var err error
	if in.done, err = s.readBody(r, in.plain); err != nil {
		in.plain.release()
		return nil, err
	}
	if in.batch, err = s.read(version, in.plain.b, t, in.came); err != nil {
		in.plain.release()
		in.done()
		return nil, err
	}
	return in, nil
}

func (in *incoming) release() {
	in.batch.release()
	in.plain.release()
	in.done()
}
