package encode_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/sql/encode"
)

// nested is a schema with lists, maps and structs in one another.
var nested = arrow.NewSchema([]arrow.Field{
	{Name: "z", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64), Nullable: true},
	{Name: "l", Type: arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32)), Nullable: true},
	{Name: "f", Type: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int32), Nullable: true},
	{Name: "s", Type: arrow.StructOf(
		arrow.Field{Name: "y", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.ListOf(arrow.StructOf(
			arrow.Field{Name: "q", Type: arrow.PrimitiveTypes.Uint16, Nullable: true},
			arrow.Field{Name: "p", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String), Nullable: true},
		)), Nullable: true},
	), Nullable: true},
	{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: 3}, Nullable: true},
}, nil)

// random returns a random JSON value of a type.
func random(rng *rand.Rand, t arrow.DataType) string {
	if rng.IntN(4) == 0 {
		return "null"
	}
	many := func(open, closed string, one func(i int) string) string {
		var parts []string
		for i := range rng.IntN(4) {
			parts = append(parts, one(i))
		}
		return open + strings.Join(parts, ",") + closed
	}
	switch t := t.(type) {
	case *arrow.StructType:
		var parts []string
		for _, f := range t.Fields() {
			parts = append(parts, fmt.Sprintf("%q:%s", f.Name, random(rng, f.Type)))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case *arrow.FixedSizeListType:
		return "[" + random(rng, t.Elem()) + "," + random(rng, t.Elem()) + "," + random(rng, t.Elem()) + "]"
	case *arrow.ListType:
		return many("[", "]", func(int) string { return random(rng, t.Elem()) })
	case *arrow.MapType:
		return many("[", "]", func(i int) string { return fmt.Sprintf(`{"key":"k%d","value":%s}`, i, random(rng, t.ItemType())) })
	case *arrow.BooleanType:
		return fmt.Sprint(rng.IntN(2) == 0)
	case *arrow.StringType:
		return fmt.Sprintf("%q", []string{"", "x", "ü\n"}[rng.IntN(3)])
	case *arrow.TimestampType:
		return fmt.Sprintf(`"2026-01-02 03:04:%02d.678901"`, rng.IntN(60))
	case *arrow.Decimal128Type:
		return fmt.Sprintf(`"%d.%03d"`, rng.Int64N(2000)-1000, rng.IntN(1000))
	default:
		return fmt.Sprint(rng.IntN(1000))
	}
}

// TestParquet: DuckDB reads from the file what was written.
func TestParquet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var want, out bytes.Buffer
	columns := make([]encode.Column, nested.NumFields())
	for i, f := range nested.Fields() {
		columns[i].Name = f.Name
	}
	text, err := encode.New(encode.JSON, &want, nested, columns)
	require.NoError(t, err)
	w, err := encode.New(encode.Parquet, &out, nested, columns)
	require.NoError(t, err)
	for range 5 {
		var rows []string
		for range rng.IntN(300) {
			var cells []string
			for _, f := range nested.Fields() {
				cells = append(cells, fmt.Sprintf("%q:%s", f.Name, random(rng, f.Type)))
			}
			rows = append(rows, "{"+strings.Join(cells, ",")+"}")
		}
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, nested, strings.NewReader("["+strings.Join(rows, ",")+"]"))
		require.NoError(t, err)
		half := batch.NumRows() / 2
		for _, part := range []arrow.RecordBatch{batch.NewSlice(0, half), batch.NewSlice(half, batch.NumRows())} {
			require.NoError(t, text.Write(part))
			require.NoError(t, w.Write(part))
			part.Release()
		}
		batch.Release()
	}
	require.NoError(t, text.End(nil))
	require.NoError(t, w.End(nil))
	require.Equal(t, want.String(), readBack(t, out.Bytes(), columns))
}

// readBack returns the rows of a Parquet file as JSON, by DuckDB.
func readBack(t *testing.T, content []byte, columns []encode.Column) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.parquet")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 256 << 20, Threads: 1, Connections: 1, TempDir: func() (string, error) { return t.TempDir(), nil },
	})
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.Stream(t.Context(), "FROM read_parquet("+duck.Literal(path)+")")
	require.NoError(t, err)
	defer rows.Close()
	conv, err := encode.NewConverter(rows.Connection(), rows.Names(), rows.Types())
	require.NoError(t, err)
	defer conv.Close()
	var out bytes.Buffer
	w, err := encode.New(encode.JSON, &out, conv.Schema(), columns)
	require.NoError(t, err)
	for rows.Next() {
		batch, err := conv.Batch(rows.Chunk())
		require.NoError(t, err)
		require.NoError(t, w.Write(batch))
		batch.Release()
	}
	require.NoError(t, rows.Err())
	require.NoError(t, w.End(nil))
	return out.String()
}

// TestEqualNames: columns of one name are all there. TestWideResults: a row group of a result with
// many columns has few rows, since it is in memory until it is complete, and so have the pieces
// that are made of a batch.
func TestWideResults(t *testing.T) {
	const columns, rows = 3000, 1000
	fields := make([]arrow.Field, columns)
	names := make([]encode.Column, columns)
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprintf("c%d", i), Type: arrow.PrimitiveTypes.Int64}
		names[i].Name = fields[i].Name
	}
	schema := arrow.NewSchema(fields, nil)
	require.Equal(t, columns, encode.Leaves(fields))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range fields {
		for row := range rows {
			b.Field(i).(*array.Int64Builder).Append(int64(row ^ i))
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	var want, out bytes.Buffer
	text, err := encode.New(encode.JSON, &want, schema, names)
	require.NoError(t, err)
	w, err := encode.New(encode.Parquet, &out, schema, names)
	require.NoError(t, err)
	for _, w := range []encode.Writer{text, w} {
		require.NoError(t, w.Write(batch))
		require.NoError(t, w.End(nil))
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	for _, g := range file.RowGroups() {
		require.LessOrEqual(t, g.NumRows()*columns, int64(1<<20))
	}
	require.Equal(t, want.String(), readBack(t, out.Bytes(), names))
}

// largest is a writer that notes the largest piece that it got.
type largest struct {
	bytes.Buffer
	most int
}

func (l *largest) Write(p []byte) (int, error) {
	l.most = max(l.most, len(p))
	return l.Buffer.Write(p)
}

// TestLongValues: JSON and CSV are written in pieces of bounded size, whatever the values are.
func TestLongValues(t *testing.T) {
	long := strings.Repeat("a<ü\"\\\x01€", 100_000)
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}, {Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String)}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	list := b.Field(1).(*array.ListBuilder)
	want := [][]any{}
	for range 3 {
		b.Field(0).(*array.StringBuilder).Append(long)
		list.Append(true)
		items := []any{}
		for range 1000 {
			list.ValueBuilder().(*array.StringBuilder).Append(long[:700])
			items = append(items, long[:700])
		}
		want = append(want, []any{long, items})
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	texts := int64(3*len(long) + 3000*700)
	require.InDelta(t, texts+3000*32, encode.Size(batch, encode.JSON), 50_000)
	require.InDelta(t, 3*texts+3000*128, encode.Size(batch, encode.Parquet), 150_000)
	for _, format := range []encode.Format{encode.JSON, encode.CSV} {
		var out largest
		w, err := encode.New(format, &out, schema, []encode.Column{{Name: "s"}, {Name: "l"}})
		require.NoError(t, err)
		require.NoError(t, w.Write(batch))
		require.NoError(t, w.End(nil))
		require.Less(t, out.most, 128<<10)
		var got struct{ Data struct{ Rows [][]any } }
		if format == encode.JSON {
			require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		} else {
			rows, err := csv.NewReader(&out.Buffer).ReadAll()
			require.NoError(t, err)
			require.Equal(t, []string{"s", "l"}, rows[0])
			for _, row := range rows[1:] {
				var items []any
				require.NoError(t, json.Unmarshal([]byte(row[1]), &items))
				got.Data.Rows = append(got.Data.Rows, []any{row[0], items})
			}
		}
		require.Equal(t, want, got.Data.Rows)
	}
}

// TestCSV: fields have quotes where encoding/csv writes them.
func TestCSV(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "a b", Type: arrow.BinaryTypes.String}, {Name: `c"`, Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	var want bytes.Buffer
	reference := csv.NewWriter(&want)
	require.NoError(t, reference.Write([]string{"a b", `c"`}))
	for i, text := range []string{"", "x", " x", "x ", "\tx", `"`, `a""b`, "a,b", "a\nb", "a\r", `\.`, "ä", "'"} {
		b.Field(0).(*array.StringBuilder).Append(text)
		number := ""
		if i%2 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Float64Builder).Append(0.5)
			number = "0.5"
		}
		require.NoError(t, reference.Write([]string{text, number}))
	}
	reference.Flush()
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w, err := encode.New(encode.CSV, &out, schema, []encode.Column{{Name: "a b"}, {Name: `c"`}})
	require.NoError(t, err)
	require.NoError(t, w.Write(batch))
	require.NoError(t, w.End(nil))
	require.Equal(t, want.String(), out.String())
}

func TestEqualNames(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}, {Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(1)
	b.Field(1).(*array.Int64Builder).Append(2)
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w, err := encode.New(encode.Parquet, &out, schema, nil)
	require.NoError(t, err)
	require.NoError(t, w.Write(batch))
	require.NoError(t, w.End(nil))
	require.Equal(t, `{"status":"success","data":{"columns":[{"name":"x","type":""},{"name":"x_1","type":""}],"rows":[[1,2]]}}`,
		readBack(t, out.Bytes(), []encode.Column{{Name: "x"}, {Name: "x_1"}}))
}
