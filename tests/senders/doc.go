// Package senders holds the tests in which the libraries of real senders write to the ingest stage:
// Prometheus' remote-write client, client_golang's push and OpenTelemetry's SDK for Go.
package senders
