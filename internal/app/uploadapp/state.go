package uploadapp

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Version is that of states in a store.
const Version = 1

// Result is how far an upload is. The names are those of Mimir's API.
type Result string

// Results of an upload.
const (
	Uploading  Result = "uploading"  // files come
	Validating Result = "validating" // all files are there, and are imported
	Complete   Result = "complete"   // all samples count
	Failed     Result = "failed"     // the import has ended with an error; it may be repeated
)

// State is that of an upload. The zero value is that of a block which nobody has uploaded.
type State struct {
	Version int    `json:"version"`
	ID      string `json:"id"` // random, of this state: no other has it
	Result  Result `json:"result"`
	Error   string `json:"error,omitempty"` // why it has failed
	// Attempts is the number of imports that began, and were neither ended nor given back.
	Attempts int             `json:"attempts,omitempty"`
	Meta     json.RawMessage `json:"meta,omitempty"`    // meta.json of the block; none once it is complete
	Files    []File          `json:"files,omitempty"`   // by path; none once it is complete
	Expired  bool            `json:"expired,omitempty"` // it is being deleted
}

// File is a file of the block.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	ETag  string `json:"etag,omitempty"` // of the object that is imported
}

// MaxAttempts bounds the imports of an upload that end with their processes. A block that kills the
// process which reads it must not kill all that follow.
const MaxAttempts = 3

// errAttempts is why an upload has failed that no more attempt is made at.
var errAttempts = fmt.Errorf("%d imports of the block ended with the process, the limit: "+
	"it may be damaged or need more than --memory-limit; finish the upload again to repeat the import", MaxAttempts)

// Begin returns the state in which an import begins. It is the failed one after MaxAttempts.
func (s *State) Begin() State {
	if s.Attempts >= MaxAttempts {
		return s.Fail(errAttempts)
	}
	next := s.next(s.Result)
	next.Attempts = s.Attempts + 1
	return next
}

// GiveBack returns the state without the attempt that Begin has counted.
func (s *State) GiveBack() State {
	next := s.next(s.Result)
	next.Attempts = max(0, s.Attempts-1)
	return next
}

// Same reports whether the files that are imported in both states are the same.
func (s *State) Same(o *State) bool {
	return bytes.Equal(s.Meta, o.Meta) && slices.Equal(s.Files, o.Files)
}

// Exists reports whether there is an upload that is not being deleted.
func (s *State) Exists() bool { return s.Version != 0 && !s.Expired }

// File returns the file of a path, if the block has it.
func (s *State) File(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(s.Files, path, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return s.Files[i], true
}

// ErrMissing reports a file that is not there, or not whole.
var ErrMissing = errors.New("the upload is not complete")

// Finish returns the state in which the files are imported. found are the files that are there.
// Errors: ErrMissing.
func (s *State) Finish(found map[string]File) (State, error) {
	next := s.next(Validating)
	next.Files = slices.Clone(s.Files)
	for i := range next.Files {
		f := &next.Files[i]
		there, ok := found[f.Path]
		if !ok {
			return State{}, fmt.Errorf("%w: file %s is missing", ErrMissing, f.Path)
		}
		if there.Bytes != f.Bytes {
			return State{}, fmt.Errorf("%w: file %s has %d bytes, meta.json says %d", ErrMissing, f.Path, there.Bytes, f.Bytes)
		}
		f.ETag = there.ETag
	}
	return next, nil
}

// maxError bounds the text of an error that is kept, in bytes.
const maxError = 2048

// Fail returns the state after an import that has ended with an error.
func (s *State) Fail(err error) State {
	next := s.next(Failed)
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	next.Error = text
	return next
}

// Complete returns the state after the import.
func (s *State) Complete() State {
	next := s.next(Complete)
	next.Meta, next.Files = nil, nil
	return next
}

// Expire returns the state of an upload that is being deleted. Files without a state have one then,
// too.
func (s *State) Expire() State {
	next := s.next(cmp.Or(s.Result, Uploading))
	next.Version, next.Expired = Version, true
	return next
}

// next is the state with another result, for which nothing was attempted.
func (s *State) next(r Result) State {
	next := *s
	next.ID, next.Result, next.Error, next.Attempts = rand.Text(), r, "", 0
	return next
}

// Encode returns the state as it is stored, with a checksum.
func (s *State) Encode() ([]byte, error) { return checksum.Marshal(s) }

// ErrState reports bytes that are no state of an upload, or one of another version.
var ErrState = errors.New("decode state of an upload")

// Decode is the inverse of State.Encode. Errors: ErrState; for damaged bytes also
// checksum.ErrDamaged.
func Decode(b []byte) (s State, err error) {
	err = checksum.Unmarshal(b, &s)
	if err == nil && s.Version != Version {
		err = fmt.Errorf("version %d, this program reads %d", s.Version, Version)
	}
	if err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	return s, nil
}
