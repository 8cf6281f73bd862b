package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"sync"
)

// errUnavailable wraps the reason why no document could be read so far. Without a document no
// request is decided.
var errUnavailable = errors.New("the document of tokens cannot be read")

// keys looks up the grants of tokens and principals. It is safe for concurrent use.
type keys interface {
	// all returns all grants by their keys. If keys are wanted and none of them has a grant, it reads
	// the document again before. It fails, with errUnavailable, only until a document was read. The
	// map does not change.
	all(ctx context.Context, wanted []string) (map[string]*grant, error)
}

// first returns the grant of the first key that has one, or nil.
func first(grants map[string]*grant, keys []string) *grant {
	for _, key := range keys {
		if g := grants[key]; g != nil {
			return g
		}
	}
	return nil
}

// read reads and validates a source's document.
func read(ctx context.Context, from Secret) (map[string]*grant, error) {
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

// fileKeys reads the document from a file. Each request checks whether the file has changed, which
// takes some microseconds, and then reads it again. If that fails, the previous document remains
// valid.
type fileKeys struct {
	file   SecretFile
	logger *slog.Logger

	mu     sync.Mutex
	seen   os.FileInfo // of the last read, even if it failed; nil: the file did not exist
	grants map[string]*grant
}

// newFileKeys reads the file and returns an error if it is invalid.
func newFileKeys(file SecretFile, logger *slog.Logger) (*fileKeys, error) {
	k := &fileKeys{file: file, logger: logger}
	info, err := os.Stat(string(file))
	if err != nil {
		return nil, fmt.Errorf("read document of tokens: %w", err)
	}
	k.seen = info
	k.grants, err = read(context.Background(), file)
	return k, err
}

func (k *fileKeys) all(ctx context.Context, _ []string) (map[string]*grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(string(k.file))
	switch {
	case err != nil && k.seen != nil:
		k.logger.Error("document of tokens does not exist, the previous one remains valid", "err", err)
		k.seen = nil
	case err == nil && !same(k.seen, info):
		k.seen = info // before the read, so that a later change is read again
		grants, err := read(ctx, k.file)
		if err != nil {
			k.logger.Error("changed document of tokens cannot be read, the previous one remains valid", "err", err)
			break
		}
		k.grants = grants
		k.logger.Info("read changed document of tokens", "tokens", len(grants))
	}
	return k.grants, nil
}

// same reports whether the file was not written in between.
func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

type principalKey struct{}

// WithPrincipal returns a ctx of a request whose sender AWS has identified by arn. A Guard decides
// such a request by the entries for principals and does not read its token. arn must come from the
// event of a Lambda function, never from the request itself; "" changes nothing.
func WithPrincipal(ctx context.Context, arn string) context.Context {
	if arn == "" {
		return ctx
	}
	return context.WithValue(ctx, principalKey{}, arn)
}

// The ARNs of principals ("IAM identifiers" in the user guide of AWS IAM). IAM takes each name of a
// role or user once in an account, whatever its path is.
var (
	principalARN = regexp.MustCompile(`^(arn:aws[a-z-]*:iam::\d{12}:)(root|(?:(role/|user/)(?:[^*?\s]+/)?([\w+=,.@-]{1,64})))$`)
	sessionARN   = regexp.MustCompile(`^(arn:aws[a-z-]*:)sts(::\d{12}:)assumed-role/([^/]+)/[^/\s]+$`)
	accountARN   = regexp.MustCompile(`^(arn:aws[a-z-]*:)(?:iam|sts)(::\d{12}:).+$`)
)

// principal returns the key of the entry for a role, a user or an account: its ARN without the path
// of the name, because the ARN of an assumed role has no path.
func principal(arn string) (string, error) {
	m := principalARN.FindStringSubmatch(arn)
	switch {
	case m == nil:
		return "", fmt.Errorf("principal: want arn:aws:iam::ACCOUNT:role/NAME, …:user/NAME or, for a whole account, …:root, got %q", arn)
	case m[2] == "root":
		return arn, nil
	}
	return m[1] + m[3] + m[4], nil
}

// principals returns the keys of the entries that may hold for a caller, the one that counts first:
// of its role or user, and of its account. Other callers, such as federated users, have only the
// latter.
func principals(arn string) (keys []string) {
	if key, err := principal(sessionARN.ReplaceAllString(arn, "${1}iam${2}role/${3}")); err == nil {
		keys = append(keys, key)
	}
	if accountARN.MatchString(arn) {
		keys = append(keys, accountARN.ReplaceAllString(arn, "${1}iam${2}root"))
	}
	return slices.Compact(keys) // the root user is its account
}
