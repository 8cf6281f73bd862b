// Package validator stands for the library with which Prometheus' tests check the OpenAPI document,
// see ../libopenapi. No test of Promlake compiles it; `go mod tidy` looks for it.
package validator
