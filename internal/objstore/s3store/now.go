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
)

// clockKey is the key that Now asks for. There is no such object: the answer's Date is what counts.
const clockKey = "promlake-clock"

// Now implements objstore.Store. The store's clock is the Date of an answer (RFC 9110, section
// 6.6.1), which has a resolution of one second as S3's LastModified has.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s.bucket(), Key: s.name(clockKey)})
	if err == nil {
		if at, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok {
			return at.Truncate(time.Second), nil
		}
		return time.Time{}, errors.New("read the store's clock: the answer has no Date")
	}
	var answer *awshttp.ResponseError
	// 403 is S3's answer for a missing object to who may not list the bucket.
	if !errors.As(err, &answer) || answer.HTTPStatusCode() != http.StatusNotFound && answer.HTTPStatusCode() != http.StatusForbidden {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", contextual(ctx, err))
	}
	at, perr := http.ParseTime(answer.HTTPResponse().Header.Get("Date"))
	if perr != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: the Date of the answer: %w", errors.Join(perr, contextual(ctx, err)))
	}
	return at, nil
}
