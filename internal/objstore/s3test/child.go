package s3test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// childEnv marks the copies of the test binary that are gateways.
const childEnv = "PROMLAKE_S3TEST_GATEWAY"

// childConfig is the first line of the child's input. The child ends when its input does, that is also when the test dies.
type childConfig struct {
	Addr    string
	Data    string // directory of the buckets
	Sidecar string // directory of the metadata, where the file system keeps no extended attributes
}

func init() {
	if os.Getenv(childEnv) == "" {
		return
	}
	if err := serve(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "s3test gateway:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(input io.Reader) error {
	in := bufio.NewReader(input)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var c childConfig
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	be, err := backendOf(c)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent closes the pipe or dies
		os.Exit(0)                     // an orderly end would wait for idle connections and has nothing to save
	}()
	return embedgw.RunVersityGW(context.Background(), be, &embedgw.Config{
		RootUserAccess:    accessKey,
		RootUserSecret:    secretKey,
		Region:            region,
		Ports:             []string{c.Addr},
		MaxConnections:    10_000,
		MaxRequests:       5_000,
		MultipartMaxParts: 10_000,
		KeepAlive:         true,
		Quiet:             true,
	})
}

func backendOf(c childConfig) (*posix.Posix, error) {
	opts := posix.PosixOpts{Concurrency: 1000}
	var store meta.MetadataStorer = meta.XattrMeta{}
	if err := (meta.XattrMeta{}).Test(c.Data); err != nil {
		sidecar, err := meta.NewSideCar(c.Sidecar)
		if err != nil {
			return nil, fmt.Errorf("open metadata: %w", err)
		}
		store, opts.SideCarDir = sidecar, c.Sidecar
	}
	be, err := posix.New(c.Data, store, opts)
	if err != nil {
		return nil, fmt.Errorf("open backend: %w", err)
	}
	return be, nil
}
