package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// Now implements objstore.Store. The time is the Date of an answer (RFC 9110, section 6.6.1), with
// a resolution of one second like S3's LastModified.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s.bucket(), Key: s.name(remote.ClockKey)})
	if err == nil {
		if at, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok {
			return at.Truncate(time.Second), nil
		}
		return time.Time{}, errors.New("read the store's clock: the answer has no Date")
	}
	var answer *awshttp.ResponseError
	// S3 answers 403 for a missing object if the caller may not list the bucket.
	if !errors.As(err, &answer) || answer.HTTPStatusCode() != http.StatusNotFound && answer.HTTPStatusCode() != http.StatusForbidden {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", remote.Contextual(ctx, err))
	}
	at, perr := http.ParseTime(answer.HTTPResponse().Header.Get("Date"))
	if perr != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: the Date of the answer: %w", errors.Join(perr, remote.Contextual(ctx, err)))
	}
	return at, nil
}
