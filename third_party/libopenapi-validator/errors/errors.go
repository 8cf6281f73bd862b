// Package errors stands for a package that Prometheus' tests import.
package errors
