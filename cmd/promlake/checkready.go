package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
)

// checkReadyCmd asks a server whether it is ready. Images have it as their health check.
type checkReadyCmd struct {
	URL     string        `arg:"" optional:"" name:"url" help:"URL of the server. Default: that of --listen on this machine."`
	Listen  string        `name:"listen" default:"127.0.0.1:9009" help:"Address on which the server of this machine serves, as of promlake serve."`
	Timeout time.Duration `name:"timeout" default:"5s" above:"0" help:"Longest time until the answer."`
}

// maxReason is how much of a refusal is printed, in bytes.
const maxReason = 4 << 10

// Run prints what the server says. It fails unless that is 200.
func (c *checkReadyCmd) Run(ctx context.Context, out flags.Streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	base := c.URL
	if base == "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return fmt.Errorf("read --listen: %w", err)
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		base = "http://" + net.JoinHostPort(host, port)
	}
	address, err := url.JoinPath(base, "/-/ready")
	if err != nil {
		return fmt.Errorf("read the URL: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("read the URL: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", address, err)
	}
	reason := strings.TrimSpace(string(text))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", address, resp.Status, reason)
	}
	_, err = fmt.Fprintln(out.Out, reason)
	return err
}
