// Package gateway gives a server under test a bucket: that of a versitygw, behind a proxy that
// counts the requests and delays each of them.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/promlake/promlake/tests/bench/server"
)

// Program is versitygw.
type Program struct {
	GatewayBin string `default:".cache/bin/versitygw" help:"versitygw's binary, as make versitygw leaves it."`
}

const (
	region    = "us-east-1"
	accessKey = "bench-access"
	secretKey = "bench-secret"
	bucket    = "bench"
)

// Gateway is a running S3 server with one bucket.
type Gateway struct {
	process *server.Process
	proxy   *http.Server
	served  chan error // of the proxy, once it has ended
	line    *line
	addr    string // of the proxy
}

// Start starts a gateway with all its files in dir, which must not exist. The caller must Stop it.
func (f Program) Start(ctx context.Context, dir string) (g *Gateway, err error) {
	objects, sidecar := filepath.Join(dir, "objects"), filepath.Join(dir, "sidecar")
	for _, d := range []string{dir, objects, sidecar} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
	}
	spec := server.Spec{
		Name: "versitygw", Binary: f.GatewayBin, WritePath: "/", ReadyPath: "/health",
		Args: func(addr, _ string) []string {
			return []string{
				"--port", addr, "--access", accessKey, "--secret", secretKey, "--region", region, "--keep-alive", "--quiet", "--health", "/health",
				"posix", "--sidecar", sidecar, objects,
			}
		},
	}
	if err := spec.Installed(); err != nil {
		return nil, err
	}
	g = &Gateway{served: make(chan error, 1), line: newLine()}
	if g.process, err = server.Start(ctx, spec, dir); err != nil {
		return nil, err
	}
	if err := g.serve(ctx); err != nil {
		return nil, errors.Join(err, g.process.Stop())
	}
	return g, nil
}

// serve starts the proxy and makes the bucket through it.
func (g *Gateway) serve(ctx context.Context) error {
	to, err := url.Parse(g.process.URL(""))
	if err != nil {
		return fmt.Errorf("parse address of versitygw: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	g.addr = l.Addr().String()
	proxy := &httputil.ReverseProxy{
		// the signature of a request covers its Host, which stays that of the proxy
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}
	g.proxy = &http.Server{Handler: g.line.through(proxy)}
	go func() { g.served <- g.proxy.Serve(l) }()
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + g.addr), Region: region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		return errors.Join(fmt.Errorf("make bucket: %w", err), g.proxy.Close())
	}
	return nil
}

// URL is that of the bucket, as promlake takes it.
func (g *Gateway) URL() string {
	q := url.Values{"endpoint": {"http://" + g.addr}, "region": {region}, "access_key": {accessKey}, "secret_key": {secretKey}}
	return "s3://" + bucket + "?" + q.Encode()
}

// Fill copies a store in a directory into the bucket, by promlake copy.
func (g *Gateway) Fill(ctx context.Context, promlake, store string) error {
	cmd := exec.CommandContext(ctx, promlake, "copy", "--from", "file://"+store, "--to", g.URL())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run promlake copy: %w; its output ends with:\n%s", err, out[max(0, len(out)-2000):])
	}
	return nil
}

// Stop ends the gateway.
func (g *Gateway) Stop() error {
	err := g.proxy.Close()
	if ended := <-g.served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, g.process.Stop())
}
