// Package resource tests that no request can bring a server down. It sends hostile and random
// requests to every endpoint and listener of a process with a memory limit of 1 GiB. A test fails
// if the process ends or panics, exceeds 1.2 GiB, takes more than twice the time limit for a query,
// or continues to work after its clients have disconnected.
//
// The table entrances has every way into the process. A new route or listener needs a place there.
//
// PROMLAKE_RESOURCE_SECONDS is the duration of random requests (default 30), PROMLAKE_RESOURCE_SEED
// their seed.
package resource
