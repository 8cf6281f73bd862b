// Package storeurl opens the object store of a URL:
//
//	file:///var/lib/promlake    a directory
//	file://./data               a directory, relative to the working directory
//	./data, /var/lib/promlake   the same without a scheme
//	s3://bucket/prefix          keys below prefix/ in a bucket
//
// Parameters of s3 URLs: region; endpoint, the URL of an S3-compatible server; path_style (true or
// false; the default is true if there is an endpoint); access_key and secret_key, for tests and
// local servers, because URLs appear in process lists; kms_key, the key of AWS KMS that encrypts
// objects. Without keys, region or endpoint, the AWS SDK's environment provides them.
//
// Package cloudstore adds gs and azblob to the programs that import it.
package storeurl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	smithytime "github.com/aws/smithy-go/time"

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
	if scheme == "file" {
		if rest == "" {
			return nil, errors.New("open store: the URL names no directory")
		}
		s, err := filestore.New(rest)
		if err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		return s, nil
	}
	bucket, kind, err := parse(scheme, rest)
	if err != nil {
		return nil, err
	}
	s, err := kind.Open(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("open store %s://%s: %w", scheme, bucket.Name, err)
	}
	return s, nil
}

// Bucket is what the URL of a bucket has.
type Bucket struct {
	Name, Prefix string
	Params       map[string]string
}

// Scheme is a kind of bucket.
type Scheme struct {
	Params []string // names of the parameters of URLs
	Open   func(ctx context.Context, b Bucket) (objstore.Store, error)
	// Location returns the URI of the bucket as other programs have it, without the prefix.
	Location func(b Bucket) (string, error)
}

var schemes = map[string]Scheme{"s3": {
	Params: []string{"region", "endpoint", "path_style", "access_key", "secret_key", "kms_key"},
	Open: func(ctx context.Context, b Bucket) (objstore.Store, error) {
		c, err := configS3(b)
		if err != nil {
			return nil, err
		}
		return s3store.New(ctx, c)
	},
	Location: func(b Bucket) (string, error) { return "s3://" + b.Name, nil },
}}

// Link adds a scheme. It is called before main only.
func Link(name string, s Scheme) { schemes[name] = s }

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
	scheme, rest, _ := strings.Cut(rawURL, "://")
	bucket, kind, err := parse(scheme, rest)
	if err != nil {
		return "", err
	}
	location, err := kind.Location(bucket)
	if err != nil {
		return "", fmt.Errorf("locate store %s://%s: %w", scheme, bucket.Name, err)
	}
	if prefix := strings.Trim(bucket.Prefix, "/"); prefix != "" {
		location += "/" + prefix
	}
	return location + "/", nil
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

// connectTimeout is how long Reachable tries to connect.
const connectTimeout = 3 * time.Second

// Reachable returns an error if nothing accepts connections at the endpoint that rawURL names, if
// it names one and no proxy is set. Programs that a user waits for call it first, because stores
// repeat requests for longer.
func Reachable(ctx context.Context, rawURL string) error {
	_, parameters, _ := strings.Cut(rawURL, "?")
	values, err := url.ParseQuery(parameters)
	endpoint, perr := url.Parse(values.Get("endpoint"))
	if err != nil || perr != nil || endpoint.Host == "" {
		return nil // Open says what is wrong
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: endpoint}); err != nil || proxy != nil {
		return nil
	}
	port := cmp.Or(endpoint.Port(), endpoint.Scheme) // the name of a service is a port, too
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var cause error
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(endpoint.Hostname(), port))
		if err == nil {
			return c.Close()
		}
		if cause == nil || !os.IsTimeout(err) { // the last attempt may have had no time
			cause = err
		}
		if smithytime.SleepWithContext(ctx, connectTimeout/10) != nil {
			return fmt.Errorf("connect to the store's endpoint %s: %w", endpoint.Host, cause)
		}
	}
}

// parse parses bucket/prefix?parameters. It does not use url.Parse, whose errors contain their
// input.
func parse(scheme, rest string) (b Bucket, kind Scheme, err error) {
	kind, ok := schemes[scheme]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(schemes)), ", ")
		if scheme == "gs" || scheme == "azblob" {
			return b, kind, fmt.Errorf("open store: this program was built without %s://, which promlake has; want file, %s", scheme, names)
		}
		return b, kind, fmt.Errorf("open store: unknown scheme %q, want file, %s", scheme, names)
	}
	path, query, _ := strings.Cut(rest, "?")
	name, prefix, _ := strings.Cut(path, "/")
	if name == "" {
		return b, kind, fmt.Errorf("open store: the %s URL names no bucket, want %[1]s://bucket/prefix", scheme)
	}
	b = Bucket{Name: name, Params: map[string]string{}}
	fail := func(format string, args ...any) (Bucket, Scheme, error) {
		return b, kind, fmt.Errorf("open store %s://%s: %w", scheme, name, fmt.Errorf(format, args...))
	}
	if b.Prefix, err = url.PathUnescape(prefix); err != nil {
		return fail("read prefix %q: %w", prefix, err)
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return fail("the parameters are not of the form name=value&name=value with %%-escapes")
	}
	for _, param := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(kind.Params, param) {
			return fail("unknown parameter %q, want %s", param, strings.Join(kind.Params, ", "))
		}
		if n := len(params[param]); n > 1 {
			return fail("parameter %s is given %d times", param, n)
		}
		b.Params[param] = params[param][0]
	}
	return b, kind, nil
}

func configS3(b Bucket) (c s3store.Config, err error) {
	c = s3store.Config{
		Bucket: b.Name, Prefix: b.Prefix, Region: b.Params["region"], Endpoint: b.Params["endpoint"], PathStyle: b.Params["endpoint"] != "",
		AccessKey: b.Params["access_key"], SecretKey: b.Params["secret_key"], KMSKey: b.Params["kms_key"],
	}
	if v, ok := b.Params["path_style"]; ok {
		if c.PathStyle, err = strconv.ParseBool(v); err != nil {
			return c, fmt.Errorf("parameter path_style: want true or false, got %q", v)
		}
	}
	return c, nil
}
