// Package lines has the formats of exports, whose lines are samples of series.
package lines
