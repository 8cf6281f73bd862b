// Package publish keeps the metadata of Iceberg tables beside the blocks of a tenant, so that other
// engines read the blocks' files without a copy:
//
//	v1/<tenant>/iceberg/<table>/metadata/v<n>.metadata.json   the table; the newest n counts
//	                                     version-hint.text    the newest n, or a little less
//	                                     <ulid>-list.avro     the manifests of a snapshot
//	                                     <day>-<digest>-<n>-<ulid>.avro
//	                                                          the data files of a UTC day, n of
//	                                                          whose blocks are left out
//
// This is the layout of Iceberg's file system tables ("Hadoop tables"). The commit point is the put
// of the next v<n>.metadata.json on condition that it does not exist. Everything else is written
// before it under new keys, except the hint, which is only raised, by compare-and-swap.
//
// A publication reads the manifest (package catalog), chooses the blocks (plan.go), and writes one
// Iceberg manifest for each day whose blocks differ from those published before. It deletes
// metadata that no version younger than Keep needs, and never a file of a block.
package publish
