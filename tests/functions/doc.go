// Package functions tests the functions as AWS Lambda runs them: the bootstraps of ingest-fn,
// query-fn and compact-fn as processes over one store, with recorded events.
package functions
