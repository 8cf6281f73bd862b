package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

const (
	childDir   = "FILESTORE_TEST_CHILD_DIR" // set in the processes that TestProcesses starts
	childCount = 100
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestProcesses: several processes increment one counter and create one set of objects in one
// directory.
func TestProcesses(t *testing.T) {
	const children = 3
	dir := t.TempDir()
	s, err := filestore.New(dir)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "counter", strings.NewReader("0"), objstore.Condition{})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	var cmds []*exec.Cmd
	won := make([]strings.Builder, children)
	for i := range children {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		cmd.Stdout, cmd.Stderr = &won[i], os.Stderr
		require.NoError(t, cmd.Start())
		cmds = append(cmds, cmd)
	}
	total := 0
	for i, cmd := range cmds {
		require.NoError(t, cmd.Wait())
		n, err := strconv.Atoi(won[i].String())
		require.NoError(t, err)
		total += n
	}
	assert.Equal(t, childCount, total, "each object is created by exactly one process")
	b, _, err := read(t.Context(), s, "counter")
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(children*childCount), b)
}

// child prints the number of objects that it created.
func child(ctx context.Context, dir string) error {
	s, err := filestore.New(dir)
	if err != nil {
		return err
	}
	won := 0
	for i := range childCount {
		if err := increment(ctx, s); err != nil {
			return err
		}
		_, err := s.Put(ctx, fmt.Sprintf("once/%d", i), strings.NewReader("x"), objstore.Condition{IfAbsent: true})
		switch {
		case err == nil:
			won++
		case !errors.Is(err, objstore.ErrPrecondition):
			return err
		}
		// Folders are created and removed while other processes use them.
		if _, err := s.Put(ctx, fmt.Sprintf("shared/%d/x", os.Getpid()), strings.NewReader("x"), objstore.Condition{}); err != nil {
			return err
		}
		if err := s.Delete(ctx, fmt.Sprintf("shared/%d/x", os.Getpid())); err != nil {
			return err
		}
	}
	_, err = fmt.Print(won)
	return err
}

func increment(ctx context.Context, s objstore.Store) error {
	for {
		v, o, err := read(ctx, s, "counter")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			return err
		}
		_, err = s.Put(ctx, "counter", strings.NewReader(strconv.Itoa(n+1)), objstore.Condition{IfMatch: o.ETag})
		if !errors.Is(err, objstore.ErrPrecondition) {
			return err
		}
	}
}

func read(ctx context.Context, s objstore.Store, key string) (string, objstore.Object, error) {
	r, o, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return "", o, err
	}
	b, err := io.ReadAll(r)
	return string(b), o, errors.Join(err, r.Close())
}
