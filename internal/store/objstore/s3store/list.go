package s3store

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/promlake/promlake/internal/store/objstore"
)

// List implements objstore.Store. It requests pages of up to 1,000 objects as the iteration needs
// them.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.client, s.listInput(prefix, startAfter))
		last := startAfter
		for pages.HasMorePages() {
			page, err := s.nextPage(ctx, pages)
			if err != nil {
				yield(objstore.Object{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			for _, c := range page.Contents {
				key, ok := s.keyOf(aws.ToString(c.Key))
				if !ok || !strings.HasPrefix(key, prefix) || key <= startAfter {
					continue
				}
				if key <= last {
					yield(objstore.Object{}, fmt.Errorf("list %q: the bucket lists %q after %q, not in the order of bytes", prefix, key, last))
					return
				}
				last = key
				o := objstore.Object{Key: key, Size: aws.ToInt64(c.Size), ETag: aws.ToString(c.ETag), Modified: aws.ToTime(c.LastModified)}
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

var _ objstore.FolderLister = (*Store)(nil)

// ListFolders implements objstore.FolderLister. One request returns up to 1,000 folders. A folder
// that contains only the marker object of a console is listed, too.
func (s *Store) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := s.listInput(prefix, "")
		in.Delimiter = aws.String("/")
		pages := s3.NewListObjectsV2Paginator(s.client, in)
		last := ""
		for pages.HasMorePages() {
			page, err := s.nextPage(ctx, pages)
			if err != nil {
				yield("", fmt.Errorf("list folders of %q: %w", prefix, err))
				return
			}
			for _, c := range page.CommonPrefixes {
				name, ok := s.keyOf(strings.TrimSuffix(aws.ToString(c.Prefix), "/"))
				folder := name + "/"
				if !ok || !strings.HasPrefix(folder, prefix) {
					continue
				}
				if folder <= last {
					yield("", fmt.Errorf("list folders of %q: the bucket lists %q after %q, not in the order of bytes", prefix, folder, last))
					return
				}
				if last = folder; !yield(folder, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) nextPage(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	page, err := pages.NextPage(ctx)
	if err != nil {
		return nil, contextual(ctx, err)
	}
	return page, nil
}

// listInput requests at least the wanted objects. It truncates prefix and startAfter before
// characters that no key contains, because they may not survive encoding in URL and XML.
func (s *Store) listInput(prefix, startAfter string) *s3.ListObjectsV2Input {
	in := &s3.ListObjectsV2Input{Bucket: s.bucket(), Prefix: s.name(representable(prefix))}
	if after := representable(startAfter); after != "" {
		in.StartAfter = s.name(after)
	}
	return in
}

// representable returns the longest prefix of v without control characters and invalid UTF-8.
func representable(v string) string {
	for i, r := range v {
		_, size := utf8.DecodeRuneInString(v[i:])
		if r < 0x20 || r == 0x7f || r == 0xfffe || r == 0xffff || r == utf8.RuneError && size == 1 {
			return v[:i]
		}
	}
	return v
}
