// Package api is the HTTP API of the query stage.
//
// It embeds upstream's own HTTP API (web/api/v1), so that JSON, status codes, error types,
// warnings, parameters and compression are upstream's. It adds what a multi-tenant server without
// scrape targets needs:
//
//	request → route → metrics → pace of writing → panic recovery → tenant → limits of body,
//	expressions and memory → handler of upstream or of this package
//
// This package handles /federate, and the routes whose upstream handler reads scrape targets or a
// local TSDB, or has no context for the tenant (see routes.go). Every other route that is not one
// of upstream's query routes is answered with 404.
//
// The package uses storage only through Backend and imports no stage. Below it are the packages
// that need no backend, or a small part of one: guard, answers, respond, exposition, lines, weights.
package api
