// Package cloudstore stores objects in containers of Azure Blob Storage, with the conditions of
// ETags, and in buckets of Google Cloud Storage, by its JSON API. There ETags are the generations
// of objects, which no other version of an object ever has. It adds azblob://container/prefix and
// gs://bucket/prefix to the URLs of package storeurl; parameters: endpoint, the URL of another
// server, and account, Azure's storage account.
package cloudstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
	htransport "google.golang.org/api/transport/http"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

const (
	timeout         = time.Minute
	idleConnections = 128
	// googleToken is the metadata that identifies the call that wrote an object.
	googleToken = "promlake-write"
	// objectFields and listFields are what the answers have of objects.
	objectFields = "name,size,generation,timeCreated,metadata"
	listFields   = "nextPageToken,prefixes,items(name,size,generation,timeCreated)"
)

func init() {
	storeurl.Link("gs", storeurl.Scheme{
		Params:   []string{"endpoint"},
		Open:     Google,
		Location: func(b storeurl.Bucket) (string, error) { return "gs://" + b.Name, nil },
	})
}

// Google returns the store of a bucket. It sends no request for an object; a missing bucket is
// reported by the first operation. Requests go without credentials to a server with the same
// protocol, which the parameter endpoint or STORAGE_EMULATOR_HOST names, or else to Google, with
// the application default credentials.
func Google(ctx context.Context, b storeurl.Bucket) (objstore.Store, error) {
	var transport http.RoundTripper = remote.NewTransport(timeout, idleConnections)
	options := []option.ClientOption{}
	if endpoint := cmp.Or(b.Params["endpoint"], os.Getenv("STORAGE_EMULATOR_HOST")); endpoint != "" {
		if !strings.Contains(endpoint, "://") {
			endpoint = "http://" + endpoint
		}
		options = append(options, option.WithEndpoint(strings.TrimSuffix(endpoint, "/")+"/storage/v1/"))
	} else {
		var err error
		if transport, err = htransport.NewTransport(ctx, transport, option.WithScopes(storage.DevstorageReadWriteScope)); err != nil {
			return nil, fmt.Errorf("find Google's application default credentials: %w", err)
		}
	}
	service, err := storage.NewService(ctx, append(options, option.WithHTTPClient(&http.Client{Transport: transport}))...)
	if err != nil {
		return nil, fmt.Errorf("configure Google Cloud Storage: %w", err)
	}
	return remote.New(&bucket{objects: service.Objects, name: b.Name}, b.Prefix, remote.DefaultPolicy)
}

// bucket is a remote.Protocol.
type bucket struct {
	objects *storage.ObjectsService
	name    string
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Get implements remote.Protocol. The bytes of a whole object are compared with its checksum.
func (b *bucket) Get(ctx context.Context, name string, offset, length int64, etag string) (remote.Answer, error) {
	call := b.objects.Get(b.name, name).Context(ctx)
	if etag != "" {
		generation, err := parseGeneration(etag)
		if err != nil {
			return remote.Answer{}, err
		}
		call.IfGenerationMatch(generation)
	}
	span := remote.RangeHeader(offset, length)
	if span != "" {
		call.Header().Set("Range", span)
	}
	res, err := call.Download()
	if err != nil {
		return remote.Answer{}, err
	}
	modified, err := http.ParseTime(res.Header.Get("Last-Modified"))
	generation := res.Header.Get("X-Goog-Generation")
	if err == nil && generation == "" {
		err = errors.New("the answer does not have the object's generation")
	}
	if err != nil {
		return remote.Answer{}, errors.Join(fmt.Errorf("read the answer's header: %w", err), res.Body.Close())
	}
	a := remote.Answer{
		Body: res.Body, Range: res.Header.Get("Content-Range"), Unsealed: res.ContentLength < 0,
		Object: objstore.Object{Size: res.ContentLength, ETag: generation, Modified: modified},
	}
	if sum, ok := wholeSum(res.Header); ok && a.Range == "" {
		a.Body = &summed{ReadCloser: res.Body, want: sum}
	}
	return a, nil
}

// wholeSum returns the checksum of the object that an answer's header has.
func wholeSum(h http.Header) (uint32, bool) {
	for _, v := range h.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(v, ",") {
			if s, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c="); ok {
				b, err := base64.StdEncoding.DecodeString(s)
				if err == nil && len(b) == 4 {
					return binary.BigEndian.Uint32(b), true
				}
			}
		}
	}
	return 0, false
}

// summed fails at the end of bytes that do not have the checksum.
type summed struct {
	io.ReadCloser
	sum, want uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.sum = crc32.Update(s.sum, castagnoli, p[:n])
	if err == io.EOF && s.sum != s.want {
		err = fmt.Errorf("checksum %08x, want %08x", s.sum, s.want)
	}
	return n, err
}

// Head implements remote.Protocol.
func (b *bucket) Head(ctx context.Context, name string) (objstore.Object, string, error) {
	o, err := b.objects.Get(b.name, name).Context(ctx).Fields(objectFields).Do()
	if err != nil {
		return objstore.Object{}, "", err
	}
	described, err := describe(o)
	return described, o.Metadata[googleToken], err
}

func describe(o *storage.Object) (objstore.Object, error) {
	created, err := time.Parse(time.RFC3339, o.TimeCreated)
	if err != nil {
		return objstore.Object{}, fmt.Errorf("read the time of %q: %w", o.Name, err)
	}
	return objstore.Object{Key: o.Name, Size: int64(o.Size), ETag: strconv.FormatInt(o.Generation, 10), Modified: created}, nil
}

// Put implements remote.Protocol, in one request, which may have 5 TiB. Google compares the bytes
// with the checksum.
func (b *bucket) Put(ctx context.Context, name string, body *io.SectionReader, cond objstore.Condition, token string) (string, error) {
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, body); err != nil {
		return "", err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("rewind body: %w", err)
	}
	o := &storage.Object{Name: name, Crc32c: base64.StdEncoding.EncodeToString(sum.Sum(nil))}
	if token != "" {
		o.Metadata = map[string]string{googleToken: token}
	}
	call := b.objects.Insert(b.name, o).Context(ctx).Fields(objectFields).WithRetry(nil, func(error) bool { return false })
	switch {
	case cond.IfAbsent:
		call.IfGenerationMatch(0)
	case cond.IfMatch != "":
		generation, err := parseGeneration(cond.IfMatch)
		if err != nil {
			return "", err
		}
		call.IfGenerationMatch(generation)
	}
	// unbuffered, as one request: package remote repeats it
	o, err := call.Media(body, googleapi.ChunkSize(0), googleapi.ContentType("application/octet-stream")).Do()
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(o.Generation, 10), nil
}

// errGeneration is the error of a condition that no object of the bucket can hold: 0 would mean an
// absent object.
var errGeneration = errors.New("the ETag is no generation")

func parseGeneration(etag string) (int64, error) {
	g, err := strconv.ParseInt(etag, 10, 64)
	if err != nil || g <= 0 {
		return 0, fmt.Errorf("%w: %q", errGeneration, etag)
	}
	return g, nil
}

// Delete implements remote.Protocol.
func (b *bucket) Delete(ctx context.Context, name string) error {
	return b.objects.Delete(b.name, name).Context(ctx).Do()
}

// List implements remote.Protocol.
func (b *bucket) List(ctx context.Context, prefix, start string, folders bool, token string) (page []objstore.Object, next string, err error) {
	call := b.objects.List(b.name).Context(ctx).Fields(listFields).MaxResults(1000).Prefix(prefix)
	if start != "" {
		call.StartOffset(start)
	}
	if folders {
		call.Delimiter("/")
	}
	if token != "" {
		call.PageToken(token)
	}
	out, err := call.Do()
	if err != nil {
		return nil, "", err
	}
	if folders {
		for _, folder := range out.Prefixes {
			page = append(page, objstore.Object{Key: folder})
		}
		return page, out.NextPageToken, nil
	}
	for _, item := range out.Items {
		o, err := describe(item)
		if err != nil {
			return nil, "", err
		}
		page = append(page, o)
	}
	return page, out.NextPageToken, nil
}

// Fault implements remote.Protocol.
func (b *bucket) Fault(err error) remote.Fault {
	if errors.Is(err, errGeneration) {
		return remote.Fault{Final: true, Means: objstore.ErrPrecondition}
	}
	if denied, ok := errors.AsType[*oauth2.RetrieveError](err); ok && denied.Response != nil {
		return remote.Fault{Status: denied.Response.StatusCode}
	}
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return remote.Fault{}
	}
	f := remote.Fault{Status: answer.Code, Header: answer.Header}
	switch {
	case answer.Code == http.StatusPreconditionFailed:
		f.Means = objstore.ErrPrecondition
	case answer.Code == http.StatusRequestedRangeNotSatisfiable:
		f.Means = objstore.ErrRange
	// a missing bucket is no missing object, and has the same status
	case answer.Code == http.StatusNotFound && !strings.Contains(answer.Message+answer.Body, "bucket does not exist"):
		f.Means = objstore.ErrNotFound
	}
	return f
}
