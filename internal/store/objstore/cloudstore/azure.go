package cloudstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// azureToken is the metadata that identifies the call that wrote a blob. Azure's names of metadata
// are identifiers.
const azureToken = "promlake_write"

func init() {
	storeurl.Link("azblob", storeurl.Scheme{
		Params: []string{"account", "endpoint"},
		Open:   Azure,
		Location: func(b storeurl.Bucket) (string, error) {
			account := accountOf(b)
			if account == "" {
				return "", errors.New("the storage account is unknown: set the parameter account or AZURE_STORAGE_ACCOUNT")
			}
			return "abfss://" + b.Name + "@" + account + ".dfs.core.windows.net", nil
		},
	})
}

// Azure returns the store of a container. It sends no request; a missing container is reported by
// the first operation. The parameter account is AZURE_STORAGE_ACCOUNT or that of the connection
// string if it is "", endpoint https://ACCOUNT.blob.core.windows.net. Credentials are the first of
// these that the environment has, named as for Azure's command line:
// AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, and those of Azure's
// default chain, such as a workload identity or a managed identity.
func Azure(_ context.Context, b storeurl.Bucket) (objstore.Store, error) {
	client, err := azureClient(b)
	if err != nil {
		return nil, fmt.Errorf("configure Azure Blob Storage: %w", err)
	}
	return remote.New(blobs{client}, b.Prefix, remote.DefaultPolicy)
}

func azureClient(b storeurl.Bucket) (*container.Client, error) {
	endpoint := b.Params["endpoint"]
	// package remote repeats requests
	options := azcore.ClientOptions{Transport: remote.NewTransport(timeout, idleConnections), Retry: policy.RetryOptions{MaxRetries: -1}}
	o := &container.ClientOptions{ClientOptions: options}
	account := accountOf(b)
	if s := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); s != "" && b.Params["account"] == "" && endpoint == "" {
		return container.NewClientFromConnectionString(s, b.Name, o)
	}
	if account == "" {
		return nil, errors.New("set the parameter account, AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING")
	}
	url := strings.TrimSuffix(cmp.Or(endpoint, "https://"+account+".blob.core.windows.net"), "/") + "/" + b.Name
	if key := os.Getenv("AZURE_STORAGE_KEY"); key != "" {
		credential, err := container.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, errors.New("AZURE_STORAGE_KEY: want base64") // the error could contain the key
		}
		return container.NewClientWithSharedKeyCredential(url, credential, o)
	}
	if sas := os.Getenv("AZURE_STORAGE_SAS_TOKEN"); sas != "" {
		return container.NewClientWithNoCredential(url+"?"+strings.TrimPrefix(sas, "?"), o)
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("find Azure's default credentials: %w", err)
	}
	return container.NewClient(url, credential, o)
}

// accountOf returns the name of the account: configured, or that of the environment.
func accountOf(b storeurl.Bucket) string {
	if account := cmp.Or(b.Params["account"], os.Getenv("AZURE_STORAGE_ACCOUNT")); account != "" {
		return account
	}
	for field := range strings.SplitSeq(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), ";") {
		if name, ok := strings.CutPrefix(field, "AccountName="); ok {
			return name
		}
	}
	return ""
}

// blobs is a remote.Protocol.
type blobs struct{ container *container.Client }

// blob returns a client of a blob. No segment of a name should end with a dot, says Microsoft
// ("Naming and referencing containers, blobs, and metadata"): two keys could then have one blob.
func (b blobs) blob(name string) (*blockblob.Client, error) {
	if strings.HasSuffix(name, ".") || strings.Contains(name, "./") {
		return nil, fmt.Errorf("%w: an element of %q ends with a dot, which Azure advises against", objstore.ErrInvalidKey, name)
	}
	return b.container.NewBlockBlobClient(name), nil
}

// Get implements remote.Protocol. Azure knows no suffix ranges: these cost one more request.
func (b blobs) Get(ctx context.Context, name string, offset, length int64, etag string) (remote.Answer, error) {
	if offset < 0 {
		o, _, err := b.Head(ctx, name)
		if err != nil {
			return remote.Answer{}, err
		}
		if o.Size == 0 {
			return remote.Answer{Body: http.NoBody, Object: o}, nil
		}
		if offset, length, err = objstore.Span(offset, length, o.Size); err != nil {
			return remote.Answer{}, err
		}
		etag = o.ETag
	}
	in := &blob.DownloadStreamOptions{AccessConditions: conditions(objstore.Condition{IfMatch: etag})}
	if offset > 0 || length >= 0 {
		in.Range = blob.HTTPRange{Offset: offset, Count: max(0, min(length, 1<<62))}
	}
	client, err := b.blob(name)
	if err != nil {
		return remote.Answer{}, err
	}
	out, err := client.DownloadStream(ctx, in)
	if err != nil {
		return remote.Answer{}, err
	}
	return remote.Answer{
		Body: out.Body, Range: value(out.ContentRange), Unsealed: out.ContentLength == nil,
		Object: objstore.Object{Size: value(out.ContentLength), ETag: string(value(out.ETag)), Modified: value(out.LastModified)},
	}, nil
}

// value returns what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

func conditions(c objstore.Condition) *blob.AccessConditions {
	modified := &blob.ModifiedAccessConditions{}
	if c.IfAbsent {
		any := azcore.ETagAny
		modified.IfNoneMatch = &any
	}
	if c.IfMatch != "" {
		etag := azcore.ETag(c.IfMatch)
		modified.IfMatch = &etag
	}
	return &blob.AccessConditions{ModifiedAccessConditions: modified}
}

// Head implements remote.Protocol.
func (b blobs) Head(ctx context.Context, name string) (o objstore.Object, token string, err error) {
	client, err := b.blob(name)
	if err != nil {
		return o, "", err
	}
	out, err := client.GetProperties(ctx, nil)
	if err != nil {
		return o, "", err
	}
	for k, v := range out.Metadata { // the case of names is lost
		if strings.EqualFold(k, azureToken) {
			token = value(v)
		}
	}
	return objstore.Object{Size: value(out.ContentLength), ETag: string(value(out.ETag)), Modified: value(out.LastModified)}, token, nil
}

// Put implements remote.Protocol, in one request, which may have 5,000 MiB.
func (b blobs) Put(ctx context.Context, name string, body *io.SectionReader, cond objstore.Condition, token string) (string, error) {
	in := &blockblob.UploadOptions{AccessConditions: conditions(cond)}
	if token != "" {
		in.Metadata = map[string]*string{azureToken: &token}
	}
	client, err := b.blob(name)
	if err != nil {
		return "", err
	}
	out, err := client.Upload(ctx, streaming.NopCloser(body), in)
	if err != nil {
		return "", err
	}
	return string(value(out.ETag)), nil
}

// Delete implements remote.Protocol.
func (b blobs) Delete(ctx context.Context, name string) error {
	client, err := b.blob(name)
	if err != nil {
		return err
	}
	_, err = client.Delete(ctx, nil)
	return err
}

// List implements remote.Protocol.
func (b blobs) List(ctx context.Context, prefix, start string, folders bool, token string) (page []objstore.Object, next string, err error) {
	if folders {
		in := &container.ListBlobsHierarchyOptions{Prefix: &prefix, Marker: remote.Optional(token)}
		out, err := b.container.NewListBlobsHierarchyPager("/", in).NextPage(ctx)
		if err != nil {
			return nil, "", err
		}
		for _, p := range out.Segment.BlobPrefixes {
			page = append(page, objstore.Object{Key: value(p.Name)})
		}
		return page, value(out.NextMarker), nil
	}
	in := &container.ListBlobsFlatOptions{Prefix: &prefix, Marker: remote.Optional(token), StartFrom: remote.Optional(start)}
	out, err := b.container.NewListBlobsFlatPager(in).NextPage(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, item := range out.Segment.BlobItems {
		o := objstore.Object{Key: value(item.Name)}
		if p := item.Properties; p != nil {
			o.Size, o.Modified, o.ETag = value(p.ContentLength), value(p.LastModified), quoted(string(value(p.ETag)))
		}
		page = append(page, o)
	}
	return page, value(out.NextMarker), nil
}

// quoted returns an ETag as headers have it; listings have it without quotes.
func quoted(etag string) string {
	if strings.HasPrefix(etag, `"`) {
		return etag
	}
	return `"` + etag + `"`
}

// Fault implements remote.Protocol.
func (b blobs) Fault(err error) remote.Fault {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		_, final := errors.AsType[interface {
			error
			NonRetriable()
		}](err)
		return remote.Fault{Final: final || errors.Is(err, objstore.ErrInvalidKey)}
	}
	f := remote.Fault{Status: answer.StatusCode}
	if answer.RawResponse != nil {
		f.Header = answer.RawResponse.Header
	}
	switch {
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		f.Means = objstore.ErrNotFound
	case answer.StatusCode == http.StatusPreconditionFailed, bloberror.HasCode(err, bloberror.BlobAlreadyExists):
		f.Means = objstore.ErrPrecondition
	case answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		f.Means = objstore.ErrRange
	}
	return f
}
