package inspectapp

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore"
)

// readerAt reads ranges of an object. It implements io.ReaderAt with one Get per call.
type readerAt struct {
	ctx   context.Context
	store objstore.Store
	key   string
}

// ReadAt implements io.ReaderAt.
func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	body, _, err := r.store.Get(r.ctx, r.key, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(body, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, errors.Join(err, body.Close())
}

// matchers writes a tombstone's matchers as a PromQL selector.
func matchers(all []catalog.Matcher) string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = m.Name + m.Type + strconv.Quote(m.Value)
	}
	return "{" + strings.Join(texts, ", ") + "}"
}
