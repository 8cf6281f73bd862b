// Package clouds adds the stores of other clouds than AWS to the URLs of package storeurl.
// Functions of AWS do without their clients:
//
//	gs://bucket/prefix            Google Cloud Storage
//	azblob://container/prefix     Azure Blob Storage
//
// Parameters: endpoint, the URL of another server; of azblob URLs also account, the storage
// account.
package clouds

import (
	"context"
	"errors"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/azurestore"
	"github.com/promlake/promlake/internal/store/objstore/gcsstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

func init() {
	storeurl.Link("gs", storeurl.Scheme{
		Params: []string{"endpoint"},
		Open: func(ctx context.Context, b storeurl.Bucket) (objstore.Store, error) {
			return gcsstore.New(ctx, gcsstore.Config{Bucket: b.Name, Prefix: b.Prefix, Endpoint: b.Params["endpoint"]})
		},
		Location: func(b storeurl.Bucket) (string, error) { return "gs://" + b.Name, nil },
	})
	storeurl.Link("azblob", storeurl.Scheme{
		Params: []string{"account", "endpoint"},
		Open: func(ctx context.Context, b storeurl.Bucket) (objstore.Store, error) {
			return azurestore.New(ctx, azurestore.Config{Container: b.Name, Prefix: b.Prefix, Account: b.Params["account"], Endpoint: b.Params["endpoint"]})
		},
		Location: func(b storeurl.Bucket) (string, error) {
			account := azurestore.Account(b.Params["account"])
			if account == "" {
				return "", errors.New("the storage account is unknown: set the parameter account or AZURE_STORAGE_ACCOUNT")
			}
			return "abfss://" + b.Name + "@" + account + ".dfs.core.windows.net", nil
		},
	})
}
