// Package telemetry is how a Promlake process tells about itself: its build, its metrics registry,
// its log and the instruments around its HTTP handlers. It knows no stage.
package telemetry
