package uploadapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// read returns the state of an upload and its ETag; a zero state and "" if there is none.
func (s *stage) read(ctx context.Context, u key.Upload) (State, string, error) {
	b, obj, err := objstore.ReadAll(ctx, s.store, u.File(key.UploadState))
	if errors.Is(err, objstore.ErrNotFound) {
		return State{}, "", nil
	}
	if err != nil {
		return State{}, "", err
	}
	state, err := Decode(b)
	if err != nil {
		return State{}, "", fmt.Errorf("%s: %w", u.File(key.UploadState), err)
	}
	return state, obj.ETag, nil
}

// open returns the state of an upload that takes files.
func (s *stage) open(ctx context.Context, u key.Upload) (State, error) {
	state, _, err := s.read(ctx, u)
	switch {
	case err != nil:
		return state, err
	case !state.Exists():
		return state, errAbsent
	case state.Result == Complete:
		return state, errExists
	case state.Result == Validating:
		return state, refuse(http.StatusConflict, "the upload is finished, and the block is being validated")
	}
	return state, nil
}

// maxRaces bounds the attempts to change a state that others change, too.
const maxRaces = 10

// change replaces the state of an upload by what next makes of it, in one compare-and-swap, and
// returns the new state. A state with the same ID is not written again.
func (s *stage) change(ctx context.Context, u key.Upload, next func(State) (State, error)) (State, error) {
	var written State
	for attempt := range maxRaces {
		current, etag, err := s.read(ctx, u)
		if err != nil {
			return current, err
		}
		if written.Exists() && current.ID == written.ID { // a put that was repeated has met itself
			return current, nil
		}
		if written, err = next(current); err != nil || written.ID == current.ID {
			return written, err
		}
		err = s.write(ctx, u, written, etag)
		if !errors.Is(err, objstore.ErrPrecondition) {
			return written, err
		}
		if err := objstore.AfterRace(ctx, attempt); err != nil {
			return current, err
		}
	}
	return State{}, errors.New("the upload is changed by too many requests at once, try again")
}

// write puts a state in the place of the one with an ETag; "": of none.
func (s *stage) write(ctx context.Context, u key.Upload, state State, etag string) error {
	b, err := state.Encode()
	if err == nil {
		_, err = s.store.Put(ctx, u.File(key.UploadState), bytes.NewReader(b), objstore.Condition{IfAbsent: etag == "", IfMatch: etag})
	}
	if err != nil {
		return fmt.Errorf("write the state of an upload: %w", err)
	}
	return nil
}

// files returns the files of an upload that are there, by path.
func (s *stage) files(ctx context.Context, u key.Upload) (map[string]File, error) {
	out := map[string]File{}
	for obj, err := range s.store.List(ctx, u.Prefix(), "") {
		if err != nil {
			return nil, fmt.Errorf("list the files of an upload: %w", err)
		}
		if _, path, err := key.ParseUploadFile(obj.Key); err == nil && path != key.UploadState {
			out[path] = File{Path: path, Bytes: obj.Size, ETag: obj.ETag}
		}
	}
	return out, nil
}

// remove deletes the files of an upload, without its state.
func (s *stage) remove(ctx context.Context, u key.Upload) error {
	files, err := s.files(ctx, u)
	if err != nil {
		return err
	}
	for path := range files {
		if err := s.store.Delete(ctx, u.File(path)); err != nil {
			return err
		}
	}
	return nil
}

// admit returns *LimitError if a new upload would exceed the limit of its tenant. An upload that
// has begun may be repeated. Processes that check at the same time may together admit a few more.
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
