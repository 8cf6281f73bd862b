package compact

import (
	"context"
)

// Work runs the job of a message. The message is done unless there is an error: bytes that are no
// job message (ErrNoJob), or a context that was cancelled before its deadline.
//
// A job that failed is no error. It is logged and counted, and a later plan has it again as soon as
// the queue accepts the same message again. Redelivery of the old message would block its group
// until then, and with it all other jobs of the day, which meanwhile become too old.
func (s *Stage) Work(ctx context.Context, body []byte) (Result, error) {
	w, err := Decode(body)
	if err != nil {
		s.log.ErrorContext(ctx, "a message is no job", "error", err)
		return Result{}, err
	}
	r, err := s.run(ctx, w, nil)
	if err != nil && ctx.Err() != nil {
		return r, err
	}
	(&failures{stage: s}).add(ctx, w.Tenant, err)
	s.ended(ctx, &r)
	return r, nil
}
