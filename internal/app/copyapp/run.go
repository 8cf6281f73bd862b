package copyapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// Settings name what is copied.
type Settings struct {
	From, To string   // URLs of stores
	Tenants  []string // none: all
}

// Run opens both stores, checks that the destination keeps its promises, and calls f with the
// tenants to copy.
func Run(ctx context.Context, s Settings, logger *slog.Logger, f func(from, to objstore.Store, tenants []string) error) (err error) {
	p := process.DefaultSettings()
	p.Store = s.From
	from, end, err := process.OpenStore(ctx, p, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	to, err := storeurl.Open(ctx, s.To)
	if err != nil {
		return err
	}
	if err := probe.Check(ctx, to); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	tenants := s.Tenants
	if len(tenants) == 0 {
		if tenants, err = all(ctx, from); err != nil {
			return err
		}
	}
	return f(from, to, tenants)
}

// Follow keeps a replica of a store until ctx ends, with a pause between two passes, and logs each
// of them. Passes that fail are repeated, unless the destination is in use.
func Follow(ctx context.Context, s Settings, pause time.Duration, logger *slog.Logger) error {
	return Run(ctx, s, logger, func(from, to objstore.Store, _ []string) (err error) {
		ctx, end := context.WithCancel(ctx)
		defer end()
		f := NewFollower(from, to, s.Tenants)
		process.Repeat(ctx, pause, func() {
			p, failure := f.Pass(ctx)
			if errors.Is(failure, ErrInUse) || errors.Is(failure, ErrOccupied) {
				err = failure
				end()
			} else if failure == nil || ctx.Err() == nil {
				p.Log(ctx, logger, failure)
			}
		})
		return err
	})
}

// Replica are the settings of a process that keeps a replica of its store.
type Replica struct {
	Store string `name:"replica.store" placeholder:"URL" help:"Object store in which to keep a replica of --store, instead of all other work: a pass every minute, or when a function's schedule runs it." when:"Set it in one process to have a copy in another region."`
}

// Replicate returns the builder of the stage that keeps a replica of all tenants.
func Replicate(s Replica) process.Builder {
	return func(ctx context.Context, p process.Parts) (process.Stage, error) {
		to, err := storeurl.Open(ctx, s.Store)
		if err != nil {
			return nil, fmt.Errorf("replica: %w", err)
		}
		r := replicating{Follower: NewFollower(p.Store, to, nil), log: p.Logger}
		if lambda.Running() {
			return r, nil
		}
		return process.InBackground(p, "replication", func(ctx context.Context) {
			process.Repeat(ctx, time.Minute, func() { _ = r.Tick(ctx, time.Time{}) })
		}), nil
	}
}

// replicating makes a pass at each tick. It implements process.Scheduled.
type replicating struct {
	process.Idle
	*Follower
	log *slog.Logger
}

// Tick implements process.Scheduled.
func (r replicating) Tick(ctx context.Context, _ time.Time) error {
	p, err := r.Pass(ctx)
	p.Log(ctx, r.log, err)
	return err
}

// all returns the tenants of a store that have samples or rules.
func all(ctx context.Context, store objstore.Store) ([]string, error) {
	tenants, err := catalog.Tenants(ctx, store)
	if err != nil {
		return nil, err
	}
	return rulestore.AddTenants(ctx, store, tenants)
}

// memoryBytes is the size up to which an object is copied through memory; larger ones go through a
// temporary file.
const memoryBytes = 4 << 20

// copyObject copies one immutable object of a known size.
func copyObject(ctx context.Context, from, to objstore.Store, key string, size int64) (err error) {
	r, obj, err := from.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if obj.Size != size {
		return fmt.Errorf("%s has %d bytes, was listed with %d", key, obj.Size, size)
	}
	body, end, err := spool(r, size)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, end()) }()
	_, err = to.Put(ctx, key, body, objstore.Condition{})
	return err
}

// spool reads size bytes to where they can be read again.
func spool(r io.Reader, size int64) (body io.ReadSeeker, end func() error, err error) {
	if size <= memoryBytes {
		b := make([]byte, size)
		_, err := io.ReadFull(r, b)
		return bytes.NewReader(b), func() error { return nil }, err
	}
	f, err := os.CreateTemp("", "promlake-copy-*")
	if err != nil {
		return nil, nil, fmt.Errorf("create temporary file: %w", err)
	}
	end = func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	if _, err = io.CopyN(f, r, size); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return f, end, nil
}
