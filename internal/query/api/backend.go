package api

import (
	"context"

	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Backend provides the data of the API. All methods are safe for concurrent use. Every method that
// reads data takes the tenant from its context (tenant.From).
//
// Errors of the storage methods become responses as listed below. This package does not classify
// errors of a series' sample iterator: those must be a promql error type or a respond.LimitError
// already, or the API treats them as errors of the query.
//
//	respond.LimitError, promql.ErrTooManySamples   422 execution
//	promql.ErrQueryTimeout, expired context        503 timeout
//	promql.ErrQueryCanceled, ended context         499 canceled
//	promql.ErrStorage and everything else          500 internal
type Backend interface {
	promql.QueryEngine
	storage.SampleAndChunkQueryable
	storage.ExemplarQueryable

	// Run calls fn once it is its turn among the queries of all tenants. Its context ends at their
	// timeout, and has request.Request.Leave. An error without a call of fn says that it waited in
	// vain.
	Run(ctx context.Context, fn func(ctx context.Context) error) error
	// Metadata returns the metadata of one metric family, or of all if metric is "".
	Metadata(ctx context.Context, metric string) (map[string][]metadata.Metadata, error)
	// Stats returns the tenant's cardinalities, at most limit entries per list: values per label
	// name, series per metric name, and series per label pair. Times are in ms.
	Stats(ctx context.Context, limit int) (*tsdb.Stats, error)
}
