package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/promlake/promlake/internal/store/objstore"
)

// ObjectKey is the key of a runtime configuration in the store.
const ObjectKey = "config/runtime.yaml"

// InStore, in place of the path of a file, means the object ObjectKey of the store.
const InStore = "store"

// A source is where a document lies. Read returns its text, at most MaxBytes and one, and its
// version; the text is nil if the version is that of known.
type source interface {
	Read(ctx context.Context, known string) (text []byte, version string, err error)
	String() string
}

// open returns the source that the setting names.
func open(setting string, store objstore.Getter) source {
	if setting == InStore {
		return object{store}
	}
	return file(setting)
}

// file is a file by its path.
type file string

func (f file) String() string { return string(f) }

// Read implements source. The version is the text, so that every change counts, however quickly it
// follows another.
func (f file) Read(_ context.Context, known string) ([]byte, string, error) {
	r, err := os.Open(string(f))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = r.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", f, err)
	}
	if string(text) == known && known != "" {
		return nil, known, nil
	}
	return text, string(text), nil
}

// object is the object ObjectKey of a store.
type object struct{ store objstore.Getter }

func (object) String() string { return "object " + ObjectKey + " of the store" }

// Read implements source. The version is the object's ETag.
func (o object) Read(ctx context.Context, known string) (text []byte, version string, err error) {
	r, info, err := o.store.Get(ctx, ObjectKey, 0, MaxBytes+1)
	if errors.Is(err, objstore.ErrRange) { // the object is empty
		return []byte{}, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if closed := r.Close(); err == nil && closed != nil {
			err = fmt.Errorf("read object %s: %w", ObjectKey, closed)
		}
	}()
	if info.ETag == known && known != "" {
		return nil, known, nil
	}
	if text, err = io.ReadAll(r); err != nil {
		return nil, "", fmt.Errorf("read object %s: %w", ObjectKey, err)
	}
	return text, info.ETag, nil
}
