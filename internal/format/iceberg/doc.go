// Package iceberg encodes and decodes the metadata of Apache Iceberg tables, format version 2
// (https://iceberg.apache.org/spec):
//
//	Metadata (JSON)  the table: schema, partitions, snapshots; a new object for each version
//	└─ List (Avro)   a snapshot: its manifests, with the range of partitions of each
//	   └─ Manifest (Avro)  data files, with their sizes and the ranges of their values
//
// Every object is immutable. Which Metadata is the newest is known to the table's catalog, of which
// this package knows nothing. It has what tables over files of others need: data files in Parquet,
// top-level columns, at most one partition field whose values are integers, and no deletes.
package iceberg
