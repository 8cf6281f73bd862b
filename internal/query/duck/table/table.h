// Tables whose rows Go supplies. C calls Go for the rows of a chunk and copies them into DuckDB's
// vectors after Go has returned: an exception of DuckDB must not cross a frame of Go.
#pragma once

#include "../../../../third_party/duckdb/duckdb.h"

#include <stddef.h>
#include <stdint.h>

// Types of columns. The numbers are those of Type in Go.
enum { PROM_VARCHAR, PROM_DOUBLE, PROM_BIGINT, PROM_TIMESTAMP, PROM_MAP, PROM_BOOLEAN, PROM_UINTEGER, PROM_DOUBLES, PROM_TYPES };

// Rows of a chunk, at most DuckDB's vector size.
enum { PROM_CHUNK_ROWS = 2048 };

typedef struct {
	char *name; // malloc
	int type;
} prom_table_column;

// What Go answers when a function is bound. Strings and the array are malloc'ed.
typedef struct {
	uintptr_t table;
	prom_table_column *columns;
	size_t count;
	uint64_t rows; // estimate
	char *error;
} prom_table_bound;

// What Go answers when a scan begins.
typedef struct {
	uintptr_t scan;
	uint64_t threads;
	char *error;
} prom_table_opened;

// One column of a chunk. The memory is Go's, pinned until the next call for the same cursor.
typedef struct {
	int type;
	const void *data;         // DOUBLE: double; BIGINT: int64_t; TIMESTAMP: int64_t (us); BOOLEAN: bool; UINTEGER: uint32_t
	const char *bytes;        // VARCHAR and MAP: all strings
	const uint32_t *ends;     // where each string ends; a map's are key, value, key, value ... DOUBLES: where each list ends; an empty one is NULL
	const uint32_t *map_ends; // MAP: how many pairs there are up to the end of each entry
	const uint8_t *valid;     // of entries, or of rows; NULL: there are no NULLs
	size_t entries;           // VARCHAR and MAP
	const uint32_t *repeats;  // VARCHAR and MAP: the rows that have each entry, in order; NULL: row i has entry i
} prom_table_vector;

typedef struct {
	size_t rows;
	prom_table_vector *vectors; // one for each column of the projection
	char *error;
} prom_table_chunk;

// What Go answers when a name is not a table: the function to call instead, with one argument.
typedef struct {
	char *function; // NULL: none
	char *argument;
} prom_table_replaced;

// Registers a table function with n parameters of any type. handle is Go's, and released with the
// database. Returns 0, or 1 if DuckDB refused.
int prom_table_register(duckdb_connection conn, const char *name, int n, uintptr_t handle);

// Makes DuckDB ask Go for names that are not tables.
void prom_table_replace(duckdb_database db, uintptr_t handle);

// Registers the function behind labels['x']. Returns 0, or 1 if DuckDB refused.
int prom_table_register_lookup(duckdb_connection conn);
