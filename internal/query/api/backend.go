package api

import (
	"context"

	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Backend answers what the API asks. All methods are safe for concurrent use; the tenant is in the
// context (tenant.From) of every method that reads data.
//
// Errors of the storage methods become responses as follows; a series' sample iterator is not
// watched, so a failure that it reports itself must already be one of the promql error types or a
// LimitError to be told apart from an error of the query.
//
//	LimitError, promql.ErrTooManySamples      422 execution
//	promql.ErrQueryTimeout, expired context   503 timeout
//	promql.ErrQueryCanceled, ended context    499 canceled
//	promql.ErrStorage and everything else     500 internal
type Backend interface {
	promql.QueryEngine
	storage.SampleAndChunkQueryable
	storage.ExemplarQueryable

	// Metadata returns the metadata of the metric family of this name, of all families if metric is
	// "". A limit ≥ 0 bounds the number of families, a limitPerMetric > 0 the entries of one. The
	// API applies both to the answer as well, so a backend need only use them to do less.
	Metadata(ctx context.Context, metric string, limit, limitPerMetric int) (map[string][]metadata.Metadata, error)
	// Stats returns the tenant's cardinalities, at most limit entries a list: of label names by
	// values, of the values of the label statsByLabelName by series, of label pairs by series.
	// Times in ms.
	Stats(ctx context.Context, statsByLabelName string, limit int) (*tsdb.Stats, error)
}

// LimitError is an error that says that a query needed more than it may have. The client gets it as
// 422, for the same query will fail again.
type LimitError interface {
	error
	// QueryLimit reports whether a limit was exceeded.
	QueryLimit() bool
}
