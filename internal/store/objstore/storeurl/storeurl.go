// Package storeurl opens the object store of a URL:
//
//	file:///var/lib/promlake    a directory
//	file://./data               a directory, relative to the working directory
//	./data, /var/lib/promlake   the same without a scheme
//	s3://bucket/prefix          keys below prefix/ in a bucket
//
// Parameters of s3 URLs: region; endpoint, the URL of an S3-compatible server; path_style (true or
// false; the default is true if there is an endpoint); access_key and secret_key, for tests and
// local servers, because URLs appear in process lists. Without keys, region or endpoint, the AWS
// SDK's environment provides them.
package storeurl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/internal/store/objstore/s3store"
)

// Open opens the store of rawURL. It creates a missing directory, but not a missing bucket. Errors
// do not contain the parameters, which may hold keys.
func Open(ctx context.Context, rawURL string) (objstore.Store, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		scheme, rest = "file", rawURL
	}
	switch scheme {
	case "file":
		s, err := openFile(rest)
		if err != nil {
			return nil, err
		}
		return s, nil
	case "s3":
		c, err := parseS3(rest)
		if err != nil {
			return nil, err
		}
		s, err := s3store.New(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("open store s3://%s: %w", c.Bucket, err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("open store: unknown scheme %q, want file or s3", scheme)
}

// Directory returns the directory that rawURL names, or false if it names a bucket.
func Directory(rawURL string) (string, bool) {
	dir, ok := strings.CutPrefix(rawURL, "file://")
	return dir, ok || !strings.Contains(rawURL, "://")
}

// Location returns the URI of the store of rawURL without parameters, as other programs have it:
// the object of a key is at the location followed by the key.
func Location(rawURL string) (string, error) {
	if dir, ok := Directory(rawURL); ok {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("find the store's directory: %w", err)
		}
		return "file://" + strings.TrimSuffix(abs, "/") + "/", nil
	}
	rest, ok := strings.CutPrefix(rawURL, "s3://")
	if !ok {
		scheme, _, _ := strings.Cut(rawURL, "://")
		return "", fmt.Errorf("open store: unknown scheme %q, want file or s3", scheme)
	}
	c, err := parseS3(rest)
	if err != nil {
		return "", err
	}
	if prefix := strings.Trim(c.Prefix, "/"); prefix != "" {
		return "s3://" + c.Bucket + "/" + prefix + "/", nil
	}
	return "s3://" + c.Bucket + "/", nil
}

// Exists returns an error if rawURL is a directory that does not exist, which Open would create.
// Programs that only read call it first, so that a mistyped path is not an empty store. A missing
// bucket is reported by the first operation.
func Exists(rawURL string) error {
	dir, ok := Directory(rawURL)
	if !ok {
		return nil
	}
	if fi, err := os.Stat(dir); err != nil {
		return fmt.Errorf("open store: %w", err)
	} else if !fi.IsDir() {
		return fmt.Errorf("open store: %s is not a directory", dir)
	}
	return nil
}

func openFile(dir string) (*filestore.Store, error) {
	if dir == "" {
		return nil, errors.New("open store: the URL names no directory")
	}
	s, err := filestore.New(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// parseS3 parses bucket/prefix?parameters. It does not use url.Parse, whose errors contain their
// input.
func parseS3(rest string) (s3store.Config, error) {
	path, query, _ := strings.Cut(rest, "?")
	bucket, prefix, _ := strings.Cut(path, "/")
	if bucket == "" {
		return s3store.Config{}, errors.New("open store: the s3 URL names no bucket, want s3://bucket/prefix")
	}
	c := s3store.Config{Bucket: bucket}
	fail := func(format string, args ...any) (s3store.Config, error) {
		return s3store.Config{}, fmt.Errorf("open store s3://%s: %w", bucket, fmt.Errorf(format, args...))
	}
	var err error
	if c.Prefix, err = url.PathUnescape(prefix); err != nil {
		return fail("read prefix %q: %w", prefix, err)
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return fail("the parameters are not of the form name=value&name=value with %%-escapes")
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		values := params[name]
		if len(values) > 1 {
			return fail("parameter %s is given %d times", name, len(values))
		}
		if err := set(&c, name, values[0]); err != nil {
			return fail("%w", err)
		}
	}
	if c.Endpoint != "" && !params.Has("path_style") {
		c.PathStyle = true
	}
	return c, nil
}

func set(c *s3store.Config, name, value string) error {
	switch name {
	case "region":
		c.Region = value
	case "endpoint":
		c.Endpoint = value
	case "access_key":
		c.AccessKey = value
	case "secret_key":
		c.SecretKey = value
	case "path_style":
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("parameter path_style: want true or false, got %q", value)
		}
		c.PathStyle = b
	default:
		return fmt.Errorf("unknown parameter %q, want region, endpoint, path_style, access_key or secret_key", name)
	}
	return nil
}
