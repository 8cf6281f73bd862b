// Package promql runs upstream's acceptance suite of PromQL over the query stage.
package promql
