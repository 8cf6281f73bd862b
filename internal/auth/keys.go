package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/promlake/promlake/internal/secret"
)

// errUnavailable wraps the reason why no document could be read yet. Nothing is decided without
// one.
var errUnavailable = errors.New("the document of tokens cannot be read")

// keys finds what a token may do. It is safe for concurrent use.
type keys interface {
	// find returns nil for a token that is not known. It fails, with errUnavailable, only before a
	// document was ever read.
	find(ctx context.Context, sum Sum) (*grant, error)
}

// read reads a source's document.
func read(ctx context.Context, from secret.Source) (map[Sum]*grant, error) {
	text, err := from.Read(ctx)
	if err != nil {
		return nil, err
	}
	d, err := ParseDocument([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return d.grants()
}

// fileKeys are those of a file, which is read again whenever it has changed: it is looked at for
// each request, which takes some microseconds. While what is there cannot be read, what was read
// last holds.
type fileKeys struct {
	file   secret.File
	logger *slog.Logger

	mu     sync.Mutex
	seen   os.FileInfo // of what was read last, also if that failed; nil: it was not there
	grants map[Sum]*grant
}

// newFileKeys reads the file. What is wrong with it is an error here, before anybody asks.
func newFileKeys(file secret.File, logger *slog.Logger) (*fileKeys, error) {
	k := &fileKeys{file: file, logger: logger}
	info, err := os.Stat(string(file))
	if err != nil {
		return nil, fmt.Errorf("read document of tokens: %w", err)
	}
	k.seen = info
	k.grants, err = read(context.Background(), file)
	return k, err
}

func (k *fileKeys) find(ctx context.Context, sum Sum) (*grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(string(k.file))
	switch {
	case err != nil && k.seen != nil:
		k.logger.Error("document of tokens is gone, the tokens of the last one hold", "err", err)
		k.seen = nil
	case err == nil && !same(k.seen, info):
		k.seen = info // before the read: what changes meanwhile is read again
		k.reload(ctx)
	}
	return k.grants[sum], nil
}

func (k *fileKeys) reload(ctx context.Context) {
	grants, err := read(ctx, k.file)
	if err != nil {
		k.logger.Error("changed document of tokens cannot be read, the tokens of the last one hold", "err", err)
		return
	}
	k.grants = grants
	k.logger.Info("read changed document of tokens", "tokens", len(grants))
}

// same reports whether nothing was written in between.
func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
