package s3store

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// Error codes of S3.
const (
	codeNoSuchKey    = "NoSuchKey"
	codeNotFound     = "NotFound" // HEAD has no body that could say more
	codeNoSuchUpload = "NoSuchUpload"
	codeInvalidRange = "InvalidRange"
	codePrecondition = "PreconditionFailed"
	codeConflict     = "ConditionalRequestConflict"
	codeAborted      = "OperationAborted" // another write of the key is under way
	codeSlowDown     = "SlowDown"
)

// backoff waits between attempts for a uniformly random time, "full jitter" in
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
type backoff struct{ min, max time.Duration }

// delay is the wait after the failed attempt n, counted from 1.
func (b backoff) delay(n int) time.Duration {
	top := math.Min(float64(b.max), float64(b.min)*math.Exp2(float64(n-1)))
	return time.Duration(rand.Float64() * top)
}

// sleep waits after the failed attempt n or until ctx ends.
func (b backoff) sleep(ctx context.Context, n int) error {
	t := time.NewTimer(b.delay(n))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newRetryer is the SDK's standard retryer, its budget against retry storms included, with our
// waits and conflict's opinion of 409 on top of the standard reasons for another attempt.
func newRetryer(c Config, b backoff, conflict func(error) aws.Ternary) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = c.MaxAttempts
		o.MaxBackoff = c.MaxBackoff
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return b.delay(attempt), nil })
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(conflict)}, append(o.Retryables,
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}, http.StatusRequestTimeout: {}}},
			retry.IsErrorRetryableFunc(retryTruncated))...)
	})
}

func retryConflict(err error) aws.Ternary {
	if isConflict(err) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

func keepConflict(err error) aws.Ternary {
	if isConflict(err) {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

// retryTruncated repeats requests whose answer broke off while it was decoded.
func retryTruncated(err error) aws.Ternary {
	var d *smithy.DeserializationError
	if errors.As(err, &d) && errors.Is(err, io.ErrUnexpectedEOF) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

func isConflict(err error) bool {
	code := errorCode(err)
	return code == codeConflict || code == codeAborted
}

// errorCode returns S3's code for an error of a request, "" for errors that are not S3's.
func errorCode(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// contextual adds the context's error to one that it caused, which the SDK hides in some places.
func contextual(ctx context.Context, err error) error {
	if cerr := ctx.Err(); cerr != nil && !errors.Is(err, cerr) {
		return errors.Join(cerr, err)
	}
	return err
}

// attempts is what became of the attempts of requests with one purpose.
type attempts struct{ errs []error }

// record makes a request add its attempts to a. It stands around the SDK's retry loop, whose
// results an operation that fails does not return otherwise.
func (a *attempts) record(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("RecordAttempts",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, meta, err := next.HandleFinalize(ctx, in)
			if results, ok := retry.GetAttemptResults(meta); ok {
				for _, r := range results.Results {
					a.errs = append(a.errs, r.Err)
				}
			}
			return out, meta, err
		}), "Retry", middleware.Before)
}

// ambiguous reports whether an attempt before the last one may have taken effect although it
// failed.
func (a *attempts) ambiguous() bool {
	earlier := a.errs[:max(0, len(a.errs)-1)]
	return slices.ContainsFunc(earlier, func(err error) bool { return !isRefusal(err) })
}

// isRefusal reports failures that had no effect for sure: S3 answered so. Answers that never came
// have status 0, those that were cut off that of a success, and errors of the server's own may come
// after the effect.
func isRefusal(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.HTTPStatusCode()
	return code >= http.StatusMultipleChoices && code < http.StatusInternalServerError || errorCode(err) == codeSlowDown
}
