// Package lines has the formats of exports, whose lines are samples of series, and turns samples into
// the metric families of the exposition formats.
package lines
