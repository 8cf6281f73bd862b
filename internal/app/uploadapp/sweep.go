package uploadapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	smithytime "github.com/aws/smithy-go/time"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// sweeping sweeps the store from time to time until ctx ends.
func (s *stage) sweeping(ctx context.Context) {
	for resume := true; ; resume = false {
		if err := s.sweep(ctx, resume); err != nil && ctx.Err() == nil {
			s.log.Warn("uploads that nobody has finished were not deleted; that is tried again later", "err", err)
		}
		if smithytime.SleepWithContext(ctx, min(sweepInterval, s.set.DeletionDelay)) != nil {
			return
		}
	}
}

// swept is what the store has of an upload.
type swept struct {
	key.Upload
	state string    // ETag; "": it has none
	files int       // beside the state
	last  time.Time // of any change
}

// sweep deletes the uploads of all tenants that nobody has changed for the deletion delay, and what
// is left of those that are imported. With resume it also continues imports: those that a process
// began which has died. A process that is not new may not, because others may do them now.
func (s *stage) sweep(ctx context.Context, resume bool) error {
	tenants, err := catalog.Tenants(ctx, s.store)
	if err != nil {
		return err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, tenant := range tenants {
		uploads, err := s.look(ctx, tenant)
		errs = append(errs, err)
		for _, x := range uploads {
			if err := s.tidy(ctx, x, now, resume); err != nil {
				errs = append(errs, fmt.Errorf("tenant %s: upload %s: %w", tenant, x.ID, err))
			}
		}
	}
	return errors.Join(errs...)
}

// look lists the uploads of a tenant, except the complete ones of which only the state is left, and
// that was read before.
func (s *stage) look(ctx context.Context, tenant string) (out []swept, err error) {
	for obj, err := range s.store.List(ctx, key.UploadsPrefix(tenant), "") {
		if err != nil {
			return nil, fmt.Errorf("list uploads of tenant %s: %w", tenant, err)
		}
		u, path, err := key.ParseUploadFile(obj.Key)
		if err != nil {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Upload != u {
			out = append(out, swept{Upload: u})
		}
		x := &out[len(out)-1]
		if path == key.UploadState {
			x.state = obj.ETag
		} else {
			x.files++
		}
		if obj.Modified.After(x.last) {
			x.last = obj.Modified
		}
	}
	return slices.DeleteFunc(out, func(x swept) bool {
		etag, _ := s.known.Load(x.File(key.UploadState))
		return x.files == 0 && x.state != "" && etag == x.state
	}), nil
}

// tidy does what is due for an upload.
func (s *stage) tidy(ctx context.Context, x swept, now time.Time, resume bool) error {
	state, etag, err := s.read(ctx, x.Upload)
	damaged := errors.Is(err, checksum.ErrDamaged)
	if err != nil && !damaged {
		return err
	}
	switch state.Result {
	case Complete:
		if x.files > 0 {
			err = s.remove(ctx, x.Upload)
		}
		if err == nil {
			s.known.Store(x.File(key.UploadState), etag)
		}
		return err
	case Validating:
		if resume {
			s.queue.add(x.Upload)
		}
		return nil
	}
	idle := s.set.DeletionDelay
	if state.Expired {
		idle = takeOver
	}
	if now.Sub(x.last) < idle || etag != x.state && !damaged {
		return nil
	}
	deleted, err := s.expire(ctx, x, state)
	if err != nil || !deleted {
		return err
	}
	s.log.Info("deleted an upload that nobody has finished", "tenant", x.Tenant, "block", x.ID.String())
	s.ended.WithLabelValues("expired").Inc()
	return nil
}

// takeOver is the age of the mark of an upload that is being deleted at which another process goes
// on with the deletion: the one that has set the mark has died, because it ends sooner.
const takeOver = sweepInterval

// expire deletes an upload, or reports that it was changed since it was listed. The state is marked
// first, by compare-and-swap, and deleted last. In between no request changes anything, and only
// the process that has set the mark deletes. So what a client starts and finishes before or
// afterwards stays whole.
func (s *stage) expire(ctx context.Context, x swept, state State) (deleted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, takeOver/2)
	defer cancel()
	err = s.write(ctx, x.Upload, state.Expire(), x.state)
	if errors.Is(err, objstore.ErrPrecondition) {
		return false, nil // the client goes on
	}
	if err == nil {
		err = s.remove(ctx, x.Upload)
	}
	if err == nil {
		err = s.store.Delete(ctx, x.File(key.UploadState))
	}
	return err == nil, err
}
