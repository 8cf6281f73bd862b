package s3store

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// List implements objstore.Store. It requests pages of up to 1,000 objects as the iteration needs
// them.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		s.names.List(ctx, prefix, startAfter, s.pages(ctx, s.listInput(prefix, startAfter)))(yield)
	}
}

var _ objstore.FolderLister = (*Store)(nil)

// ListFolders implements objstore.FolderLister. One request returns up to 1,000 folders.
func (s *Store) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := s.listInput(prefix, "")
		in.Delimiter = aws.String("/")
		s.names.ListFolders(ctx, prefix, s.pages(ctx, in))(yield)
	}
}

func (s *Store) pages(ctx context.Context, in *s3.ListObjectsV2Input) remote.Pages {
	pages := s3.NewListObjectsV2Paginator(s.client, in)
	return func() (remote.Page, error) {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return remote.Page{}, err
		}
		page := remote.Page{Last: !pages.HasMorePages()}
		for _, c := range out.Contents {
			o := objstore.Object{Key: aws.ToString(c.Key), Size: aws.ToInt64(c.Size), ETag: aws.ToString(c.ETag), Modified: aws.ToTime(c.LastModified)}
			page.Objects = append(page.Objects, o)
		}
		for _, p := range out.CommonPrefixes {
			page.Folders = append(page.Folders, aws.ToString(p.Prefix))
		}
		return page, nil
	}
}

// listInput requests at least the wanted objects.
func (s *Store) listInput(prefix, startAfter string) *s3.ListObjectsV2Input {
	in := &s3.ListObjectsV2Input{Bucket: s.bucket(), Prefix: s.name(remote.Representable(prefix))}
	if after := remote.Representable(startAfter); after != "" {
		in.StartAfter = s.name(after)
	}
	return in
}
