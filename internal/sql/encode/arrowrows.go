package encode

/*
#cgo CFLAGS: -DDUCKDB_STATIC_BUILD
#include <stdlib.h>
#include "../../../third_party/duckdb/duckdb.h"

// The Arrow C data interface, https://arrow.apache.org/docs/format/CDataInterface.html
struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};
struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/duckdb/duckdb-go/v2/mapping"

	_ "github.com/promlake/promlake/third_party/duckdb"
)

// Converter turns the chunks of one result into Arrow record batches, without a copy of most
// columns.
type Converter struct {
	options C.duckdb_arrow_options
	schema  *arrow.Schema
}

// NewConverter returns the converter of a result with columns of these names and types. The caller
// closes it.
func NewConverter(conn mapping.Connection, names []string, types []mapping.LogicalType) (*Converter, error) {
	c := &Converter{}
	C.duckdb_connection_get_arrow_options(C.duckdb_connection(conn.Ptr), &c.options)
	n := len(types)
	// Go's collector follows what the pointers below replace, so this memory begins with zeros.
	cTypes, cNames := C.calloc(C.size_t(n+1), C.sizeof_uintptr_t), C.calloc(C.size_t(n+1), C.sizeof_uintptr_t)
	defer C.free(cTypes)
	defer C.free(cNames)
	for i := range types {
		unsafe.Slice((*C.duckdb_logical_type)(cTypes), n)[i] = C.duckdb_logical_type(types[i].Ptr)
		name := C.CString(names[i])
		defer C.free(unsafe.Pointer(name))
		unsafe.Slice((**C.char)(cNames), n)[i] = name
	}
	out := (*C.struct_ArrowSchema)(C.calloc(1, C.sizeof_struct_ArrowSchema))
	defer C.free(unsafe.Pointer(out))
	err := failure(C.duckdb_to_arrow_schema(c.options, (*C.duckdb_logical_type)(cTypes), (**C.char)(cNames), C.idx_t(n), out))
	if err == nil {
		defer cdata.ReleaseCArrowSchema((*cdata.CArrowSchema)(unsafe.Pointer(out)))
		c.schema, err = cdata.ImportCArrowSchema((*cdata.CArrowSchema)(unsafe.Pointer(out)))
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("describe the result for Arrow: %w", err)
	}
	return c, nil
}

// Schema is the schema of the batches.
func (c *Converter) Schema() *arrow.Schema { return c.schema }

// Batch returns a chunk as a batch, which the caller releases.
func (c *Converter) Batch(chunk mapping.DataChunk) (arrow.RecordBatch, error) {
	out := (*C.struct_ArrowArray)(C.calloc(1, C.sizeof_struct_ArrowArray))
	defer C.free(unsafe.Pointer(out))
	if err := failure(C.duckdb_data_chunk_to_arrow(c.options, C.duckdb_data_chunk(chunk.Ptr), out)); err != nil {
		return nil, fmt.Errorf("convert rows for Arrow: %w", err)
	}
	b, err := cdata.ImportCRecordBatchWithSchema((*cdata.CArrowArray)(unsafe.Pointer(out)), c.schema)
	if err != nil {
		return nil, fmt.Errorf("read rows as Arrow: %w", err)
	}
	return b, nil
}

// Close frees the Converter. Its batches stay valid.
func (c *Converter) Close() { C.duckdb_destroy_arrow_options(&c.options) }

// failure returns DuckDB's error, if it is one, and frees it.
func failure(e C.duckdb_error_data) error {
	defer C.duckdb_destroy_error_data(&e)
	if e == nil || !C.duckdb_error_data_has_error(e) {
		return nil
	}
	return errors.New(C.GoString(C.duckdb_error_data_message(e)))
}
