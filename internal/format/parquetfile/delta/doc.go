// Package delta encodes and decodes Parquet's DELTA_BINARY_PACKED: integers as the differences
// between neighbours, less the least of their block. It writes them tightly, or in whole bytes,
// which zstd compresses better.
package delta
