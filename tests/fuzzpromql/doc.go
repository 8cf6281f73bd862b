// Package fuzzpromql sends the same random PromQL over the same random data to Promlake and to
// upstream's engine, and compares the answers.
//
// It contains only tests. PROMLAKE_FUZZPROMQL_QUERIES sets the number of queries,
// PROMLAKE_FUZZPROMQL_SEED the first seed. A seed determines its query, times and data, so a
// reported one is repeated with PROMLAKE_FUZZPROMQL_QUERIES=1.
package fuzzpromql
