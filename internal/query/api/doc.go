// Package api is the Prometheus HTTP face of the query stage.
//
// It embeds upstream's own HTTP API (web/api/v1), so that JSON, status codes, error types,
// warnings, parameters and compression are upstream's. Around it this package adds what a
// multi-tenant server without scrape targets needs:
//
//	request → metrics → panic recovery → tenant → body limit → route → upstream's handler, or ours
//
// Ours are the routes whose upstream version reads from scrape targets, from a local TSDB or has no
// context that could carry a tenant (see routes.go), and /federate. Routes that are neither
// upstream's query routes nor ours do not exist: 404.
//
// The package knows the storage only through Backend and imports no stage.
package api
