package flightsql

import (
	"context"
	"regexp"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The names of the tables as statements have them: catalog.schema.table.
const (
	catalogName = "memory"
	schemaName  = "main"
	tableType   = "VIEW"
)

// rows returns a result of texts; a column of binary takes them as bytes.
func rows(schema *arrow.Schema, values ...[]string) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, row := range values {
		for i, v := range row {
			switch f := b.Field(i).(type) {
			case *array.StringBuilder:
				f.Append(v)
			case *array.BinaryBuilder:
				f.Append([]byte(v))
			}
		}
	}
	out := make(chan flight.StreamChunk, 1)
	out <- flight.StreamChunk{Data: b.NewRecordBatch()}
	close(out)
	return schema, out, nil
}

// GetFlightInfoCatalogs implements flightsql.Server.
func (*service) GetFlightInfoCatalogs(_ context.Context, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return info(desc, desc.Cmd, schema_ref.Catalogs), nil
}

// DoGetCatalogs implements flightsql.Server.
func (*service) DoGetCatalogs(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rows(schema_ref.Catalogs, []string{catalogName})
}

// GetFlightInfoSchemas implements flightsql.Server.
func (*service) GetFlightInfoSchemas(_ context.Context, _ flightsql.GetDBSchemas, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return info(desc, desc.Cmd, schema_ref.DBSchemas), nil
}

// DoGetDBSchemas implements flightsql.Server.
func (*service) DoGetDBSchemas(_ context.Context, q flightsql.GetDBSchemas) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	if err := bounded(q.GetDBSchemaFilterPattern()); err != nil {
		return nil, nil, err
	}
	if !inCatalog(q.GetCatalog()) || !like(q.GetDBSchemaFilterPattern(), schemaName) {
		return rows(schema_ref.DBSchemas)
	}
	return rows(schema_ref.DBSchemas, []string{catalogName, schemaName})
}

// GetFlightInfoTableTypes implements flightsql.Server.
func (*service) GetFlightInfoTableTypes(_ context.Context, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return info(desc, desc.Cmd, schema_ref.TableTypes), nil
}

// DoGetTableTypes implements flightsql.Server.
func (*service) DoGetTableTypes(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rows(schema_ref.TableTypes, []string{tableType})
}

// GetFlightInfoTables implements flightsql.Server.
func (*service) GetFlightInfoTables(_ context.Context, q flightsql.GetTables, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return info(desc, desc.Cmd, tablesSchema(q)), nil
}

func tablesSchema(q flightsql.GetTables) *arrow.Schema {
	if q.GetIncludeSchema() {
		return schema_ref.TablesWithIncludedSchema
	}
	return schema_ref.Tables
}

// DoGetTables implements flightsql.Server.
func (s *service) DoGetTables(ctx context.Context, q flightsql.GetTables) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	if err := bounded(q.GetDBSchemaFilterPattern(), q.GetTableNameFilterPattern()); err != nil {
		return nil, nil, err
	}
	names, err := s.tables(ctx)
	if err != nil {
		return nil, nil, err
	}
	wanted := inCatalog(q.GetCatalog()) && like(q.GetDBSchemaFilterPattern(), schemaName) && ofType(q.GetTableTypes())
	var out [][]string
	for _, name := range names {
		if !wanted || !like(q.GetTableNameFilterPattern(), name) {
			continue
		}
		row := []string{catalogName, schemaName, name, tableType}
		if q.GetIncludeSchema() {
			schema, err := s.schema(ctx, statement{Query: "FROM " + name})
			if err != nil {
				return nil, nil, err
			}
			row = append(row, string(flight.SerializeSchema(schema, memory.DefaultAllocator)))
		}
		out = append(out, row)
	}
	return rows(tablesSchema(q), out...)
}

// tables returns the names of the tables.
func (s *service) tables(ctx context.Context) (out []string, err error) {
	in, err := s.ask(ctx, statement{Query: "SHOW TABLES"})
	if err != nil {
		return nil, err
	}
	defer in.Release()
	for in.Next() {
		if names, ok := in.RecordBatch().Column(0).(*array.String); ok {
			for i := range names.Len() {
				out = append(out, strings.Clone(names.Value(i)))
			}
		}
	}
	return out, in.Err()
}

func inCatalog(catalog *string) bool {
	return catalog == nil || *catalog == "" || *catalog == catalogName
}

func ofType(types []string) bool {
	for _, t := range types {
		if t == tableType {
			return true
		}
	}
	return len(types) == 0
}

// maxPattern is the length of the longest filter of names, in bytes. Matching takes time and memory
// in proportion to it.
const maxPattern = 1 << 10

// bounded refuses patterns that are too long.
func bounded(patterns ...*string) error {
	for _, p := range patterns {
		if p != nil && len(*p) > maxPattern {
			return status.Errorf(codes.InvalidArgument, "a filter pattern has %d bytes; the limit is %d", len(*p), maxPattern)
		}
	}
	return nil
}

// like reports whether a name matches a pattern of SQL's LIKE; nil and "" match every name.
func like(pattern *string, name string) bool {
	if pattern == nil || *pattern == "" {
		return true
	}
	re := strings.NewReplacer("%", ".*", "_", ".").Replace(regexp.QuoteMeta(*pattern))
	ok, err := regexp.MatchString("^(?s:"+re+")$", name)
	return err == nil && ok
}
