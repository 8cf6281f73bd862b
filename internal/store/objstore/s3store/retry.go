package s3store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// Error codes of S3.
const (
	codeNoSuchKey    = "NoSuchKey"
	codeNotFound     = "NotFound" // an answer to HEAD has no body with a more specific code
	codeAccessDenied = "AccessDenied"
	codeForbidden    = "Forbidden" // that of HEAD
	codeNoSuchUpload = "NoSuchUpload"
	codeInvalidRange = "InvalidRange"
	codePrecondition = "PreconditionFailed"
	codeConflict     = "ConditionalRequestConflict"
	codeAborted      = "OperationAborted" // another write of the key is running
	codeSlowDown     = "SlowDown"
)

// newRetryer returns the SDK's standard retryer, including its budget against retry storms, with
// the waits of p. conflict decides about 409; the other conditions are the standard ones and a few
// transient failures.
func newRetryer(p remote.Policy, conflict aws.Ternary) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = p.MaxAttempts
		o.MaxBackoff = p.MaxBackoff
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return p.Delay(attempt), nil })
		o.Retryables = append([]retry.IsErrorRetryable{when(isConflict, conflict)}, append(o.Retryables,
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}, http.StatusRequestTimeout: {}}},
			when(isTruncated, aws.TrueTernary))...)
	})
}

// when decides about the errors that is holds for.
func when(is func(error) bool, retried aws.Ternary) retry.IsErrorRetryableFunc {
	return func(err error) aws.Ternary {
		if is(err) {
			return retried
		}
		return aws.UnknownTernary
	}
}

// isTruncated reports whether an answer ended too early. Where it ended decides which part
// of the SDK notices. An error of a caller's body is itself marked as not retryable.
func isTruncated(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

func isConflict(err error) bool {
	code := errorCode(err)
	return code == codeConflict || code == codeAborted
}

// errorCode returns S3's code of an error, or "" if the error is not from S3.
func errorCode(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// attempts records the errors of the attempts of a request.
type attempts struct{ errs []error }

// record makes a request add its attempts to a. It wraps the SDK's retry loop, because a failed
// operation does not return their results otherwise.
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

// isRefusal reports whether a failed request certainly had no effect, because S3 answered with a
// rejection. A missing answer has status 0, a truncated one the status of a success, and a server
// may report internal errors after the effect.
func isRefusal(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.HTTPStatusCode()
	return code >= http.StatusMultipleChoices && code < http.StatusInternalServerError || errorCode(err) == codeSlowDown
}
