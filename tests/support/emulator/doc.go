// Package emulator emulates AWS Lambda and the services that invoke functions, for tests and for
// LocalStack, with the real bootstraps:
//
//   - Function runs a bootstrap as processes (Lambda's execution environments). Each process gets a
//     Runtime API (2018-06-01) and an Extensions API (2020-01-01) of its own. Lambda's limits on
//     time, payload and concurrency hold.
//   - Gateway is an API Gateway HTTP API: it turns HTTP requests into events of payload format 2.0.
//   - URL is a Function URL, buffered or streaming.
package emulator
