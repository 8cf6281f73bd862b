// Package block is the compacted format: a series table and narrow sample files of one window of
// one level. It knows bytes, not networks. schemas/block.md is its specification.
//
// The objects of a block are Parquet files with REQUIRED columns only, and meta.json:
//
//	series.parquet            a row per series, in block order: metric, series_id, l_<name> ..., labels,
//	                          where its rows lie in the other files
//	samples-0000.parquet ...  a row per float sample: metric, series_id, ts, v_int, v_div, and st where
//	                          it is needed
//	histograms-0000.parquet   a row per native histogram: metric, series_id, ts, count, sum, h
//	exemplars.parquet         a row per exemplar: metric, series_id, ts, value, labels
//	metadata.parquet          a row per metric family: metric, type, unit, help
//	meta.json                 Meta: the block's contents, and where every column chunk of every file lies
//
// Files that would be empty are not written, except for series.parquet and meta.json. The rows of
// samples, histograms and exemplars lie in the order of the series table, then by time. Block order
// is series.ComparePriority.
//
// The value of a sample is v_int / v_div.
package block
