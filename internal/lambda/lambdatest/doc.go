// Package lambdatest stands in for AWS Lambda and what calls it, so that the real bootstraps run and are killed in tests:
//
//   - Function is a function: environments that run a bootstrap as a process against a Runtime API (2018-06-01) and an Extensions API
//     (2020-01-01) of their own, started when an invocation finds none free, with Lambda's limits on time, payload and concurrency.
//   - Gateway is an API Gateway HTTP API in front of functions: HTTP in, payload format 2.0 to an Invoker, its answer out.
//   - URL is a Function URL, buffered or streaming.
package lambdatest
