// Package resource tests that no request can bring a server down: hostile and random
// requests go to every endpoint of a process with a memory limit of 1 GiB. A test fails when the
// process dies or panics, when it takes more than 1.2 GiB, when a query takes more than twice its
// time limit, or when the process goes on working after its clients have left.
//
// PROMLAKE_RESOURCE_SECONDS is how long random requests are sent (default 30),
// PROMLAKE_RESOURCE_SEED their seed.
package resource
