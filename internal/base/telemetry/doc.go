// Package telemetry provides what a Promlake process reports about itself: its build, its metrics
// registry, its log and the metrics of its HTTP handlers. It is independent of the stages.
package telemetry
