// Package sql tests the SQL of the query stage: the tables and functions of statements against what
// was written and against PromQL, what statements may read and take, and their costs.
package sql
