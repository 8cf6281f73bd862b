// Package exposition turns samples into the metric families of the exposition formats.
package exposition
