// Package divide cuts a range query into slices of its steps, describes each slice as a piece that
// another process can evaluate over the same store, asks workers for the pieces, and joins their
// answers to that of the query.
package divide
