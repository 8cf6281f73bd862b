// Package fuzzpromql asks Promlake and upstream's engine the same random PromQL over the same
// random data and holds every answer of Promlake against upstream's.
//
// It has nothing but tests. PROMLAKE_FUZZPROMQL_QUERIES sets the number of queries,
// PROMLAKE_FUZZPROMQL_SEED the first seed: a seed alone makes its query, its times and its data, so
// that a reported one repeats with PROMLAKE_FUZZPROMQL_QUERIES=1.
package fuzzpromql
