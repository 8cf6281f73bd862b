// Package respond answers requests of the query API: data in upstream's envelope, and errors with
// upstream's types and statuses.
package respond
