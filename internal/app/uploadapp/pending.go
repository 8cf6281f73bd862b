package uploadapp

import (
	"context"
	"errors"
	"fmt"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
)

// admit returns *LimitError if an upload would begin beyond the limit of its tenant. One that
// has begun may begin anew. Several processes may together begin some more.
func (s *stage) admit(ctx context.Context, u key.Upload) error {
	limit := s.set.MaxPending
	if s.set.Tenants != nil {
		limit = s.set.Tenants.PendingUploads(ctx, u.Tenant)
	}
	if limit == 0 {
		return nil
	}
	if own, _, err := s.read(ctx, u); err != nil || own.Version != 0 {
		return err
	}
	uploads, err := s.look(ctx, u.Tenant)
	if err != nil {
		return err
	}
	pending := 0
	for _, x := range uploads {
		if x.state == "" {
			continue // only files: the sweep deletes them
		}
		state, etag, err := s.read(ctx, x.Upload)
		switch {
		case err != nil && !errors.Is(err, checksum.ErrDamaged):
			return err
		case err == nil && state.Result == Complete:
			if x.files == 0 {
				s.known.Store(x.File(key.UploadState), etag)
			}
		case err != nil || state.Version != 0:
			pending++
		}
	}
	if pending < limit {
		return nil
	}
	return &LimitError{Limit: LimitPending, Text: fmt.Sprintf(
		"the tenant has %d blocks whose upload has begun and that are not imported, the limit is %d: "+
			"finish these, wait for their import, or raise --%s; an upload that nobody changes is deleted after %s",
		pending, limit, LimitPending, s.set.DeletionDelay)}
}
