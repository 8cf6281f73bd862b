// Package functions tests the functions as AWS Lambda runs them: the bootstraps of ingest-fn, query-fn and compact-fn as processes, recorded
// events in, answers out, over one store.
package functions
