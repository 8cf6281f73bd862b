// Package senders holds the tests in which the remote-write client of a real Prometheus writes to
// the ingest stage.
package senders
