// Package weights answers what series cost, and which metrics and labels queries ask for: Mimir's
// cardinality API, VictoriaMetrics' statistics of metric names, and the extended status of the
// TSDB.
package weights
