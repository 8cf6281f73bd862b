package archtest

// Kinds of packages. A noun is a format or a value and imports no verb. A verb is a stage and
// imports no other verb. Only the composition (internal/app, cmd, the functions) and tests import
// several verbs.
var (
	nouns    = []string{"internal/admission", "internal/auth", "internal/block", "internal/catalog", "internal/checksum", "internal/cost", "internal/expression", "internal/iceberg", "internal/key", "internal/lambda", "internal/live", "internal/memory", "internal/message", "internal/objstore", "internal/parquetfile", "internal/promblock", "internal/queue", "internal/recent", "internal/remotewrite", "internal/replica", "internal/rollup", "internal/rulestate", "internal/rulestore", "internal/ruletemplate", "internal/secret", "internal/segment", "internal/series", "internal/telemetry", "internal/temporality", "internal/tenant", "internal/timeparam"}
	verbs    = []string{"internal/compact", "internal/ingest", "internal/publish", "internal/query"}
	composes = []string{"cmd", "compact-fn", "infra", "ingest-fn", "internal/app", "query-fn", "tests"}
)

// allowed lists every package of the module with the packages of the module that its code (except
// tests) may import. It is exact: a new package, a new import and a removed import each require a
// change here, which a reviewer sees.
var allowed = map[string][]string{
	// Programs.
	"cmd/promlake": {
		"internal/app", "internal/app/compactapp", "internal/app/copyapp", "internal/app/doctorapp", "internal/app/exportapp", "internal/app/flags", "internal/app/human", "internal/app/importapp", "internal/app/ingestapp", "internal/app/inspectapp", "internal/app/process", "internal/app/publishapp", "internal/app/queryapp", "internal/app/rulesapp", "internal/app/sqlapp", "internal/app/tenantapp", "internal/auth", "internal/catalog", "internal/compact/plan", "internal/cost", "internal/loopback", "internal/objstore", "internal/objstore/probe", "internal/promconfig", "internal/publish", "internal/query", "internal/query/explain", "internal/query/request", "internal/queue/sqsqueue", "internal/ruletest", "internal/rulestore", "internal/settings", "internal/telemetry", "internal/tenant",
	},
	"compact-fn":              {"internal/app/compactapp", "internal/app/flags", "internal/app/process", "internal/lambda", "internal/settings"},
	"ingest-fn":               {"internal/app/flags", "internal/app/ingestapp", "internal/app/process", "internal/ingest", "internal/lambda", "internal/settings"},
	"infra/localstack/lambda": {"internal/app/flags", "tests/support/emulator"},
	"query-fn":                {"internal/admission", "internal/app/flags", "internal/app/pageapp", "internal/app/process", "internal/app/queryapp", "internal/app/ruleapp", "internal/lambda", "internal/ruler", "internal/settings"},

	// Composition.
	"internal/app": {
		"internal/app/compactapp", "internal/app/doctorapp", "internal/app/importapp", "internal/app/ingestapp", "internal/app/listenapp", "internal/app/pageapp", "internal/app/process", "internal/app/promapp", "internal/app/publishapp", "internal/app/queryapp", "internal/app/ruleapp", "internal/app/tenantapp", "internal/app/uploadapp", "internal/auth", "internal/demo", "internal/flightsql", "internal/ingest", "internal/loopback", "internal/objstore/storeurl", "internal/promconfig", "internal/query", "internal/replica", "internal/ruler", "internal/settings", "internal/telemetry",
	},
	"internal/app/compactapp": {
		"internal/app/flags", "internal/app/process", "internal/auth", "internal/compact", "internal/key", "internal/lambda", "internal/objstore",
		"internal/objstore/probe", "internal/queue", "internal/queue/sqsqueue", "internal/recent", "internal/settings",
	},
	"internal/app/copyapp": {
		"internal/app/process", "internal/catalog", "internal/key", "internal/objstore", "internal/objstore/probe", "internal/objstore/storeurl", "internal/rulestore",
	},
	"internal/app/doctorapp": {
		"internal/app/human", "internal/app/process", "internal/block", "internal/catalog", "internal/checksum", "internal/compact/blockio", "internal/key", "internal/objstore", "internal/panics", "internal/parquetfile", "internal/segment", "internal/series", "internal/tenant",
	},
	"internal/app/flags":     {"internal/settings"},
	"internal/app/human":     {},
	"internal/app/ingestapp": {"internal/app/flags", "internal/app/human", "internal/app/process", "internal/auth", "internal/datadog", "internal/ingest", "internal/lambda", "internal/message", "internal/queue", "internal/queue/sqsqueue", "internal/recent"},
	"internal/app/listenapp": {"internal/app/process", "internal/graphite", "internal/lineprotocol", "internal/listen", "internal/memory", "internal/opentsdb", "internal/remotewrite", "internal/statsd", "internal/tenant"},
	"internal/app/exportapp": {"internal/key", "internal/query/sql/encode"},
	"internal/app/importapp": {
		"internal/app/human", "internal/catalog", "internal/compact/bulk", "internal/cost", "internal/key", "internal/memory", "internal/objstore",
		"internal/objstore/probe", "internal/objstore/storeurl", "internal/promblock", "internal/series", "internal/settings", "internal/tempdir", "internal/tenant",
	},
	"internal/app/inspectapp": {
		"internal/app/human", "internal/block", "internal/catalog", "internal/compact", "internal/compact/plan", "internal/key",
		"internal/objstore", "internal/segment",
	},
	"internal/app/process": {
		"internal/app/flags", "internal/auth", "internal/cost", "internal/lambda", "internal/memory", "internal/objstore", "internal/objstore/instrument", "internal/objstore/probe", "internal/objstore/rooted", "internal/objstore/storeurl", "internal/selfwrite", "internal/settings", "internal/telemetry",
	},
	"internal/app/promapp": {
		"internal/app/process", "internal/appender", "internal/auth", "internal/expression", "internal/memory", "internal/objstore", "internal/panics", "internal/promconfig", "internal/query", "internal/query/api", "internal/rulestore", "internal/ruletemplate", "internal/settings", "internal/spool", "internal/tenant",
	},
	"internal/app/pageapp": {"internal/app/process", "internal/auth", "web"},
	"internal/app/publishapp": {
		"internal/app/process", "internal/catalog", "internal/objstore", "internal/objstore/storeurl", "internal/publish",
	},
	"internal/app/queryapp": {
		"internal/admission", "internal/app/flags", "internal/app/process", "internal/auth", "internal/objstore", "internal/query", "internal/query/admin", "internal/query/api", "internal/query/api/respond", "internal/query/api/weights", "internal/query/duck/guard", "internal/query/duck/promsql", "internal/query/usage", "internal/recent", "internal/settings",
		"internal/telemetry",
	},
	"internal/app/ruleapp": {
		"internal/app/process", "internal/auth", "internal/expression", "internal/ingest", "internal/lambda", "internal/query", "internal/queue/sqsqueue", "internal/remotewrite",
		"internal/rulefn", "internal/ruler", "internal/settings", "internal/tenant",
	},
	"internal/app/rulesapp": {
		"internal/app/human", "internal/app/importapp", "internal/app/process", "internal/app/queryapp", "internal/compact/bulk", "internal/key", "internal/live", "internal/memory", "internal/objstore",
		"internal/objstore/probe", "internal/query", "internal/query/request", "internal/ruleeval", "internal/segment", "internal/series", "internal/tenant",
	},
	"internal/app/sqlapp": {"internal/app/human", "internal/query/duck", "internal/query/duck/promsql", "internal/query/sql/statement"},
	"internal/app/tenantapp": {
		"internal/app/process", "internal/catalog", "internal/cost", "internal/key", "internal/objstore", "internal/panics", "internal/query/inventory", "internal/telemetry",
	},
	"internal/app/uploadapp": {
		"internal/app/importapp", "internal/app/process", "internal/auth", "internal/catalog", "internal/checksum", "internal/compact/bulk", "internal/ingest/body", "internal/key", "internal/memory", "internal/objstore", "internal/promblock", "internal/tenant",
	},
	"internal/demo": {"internal/promconfig", "internal/settings"},

	// Between the composition and the nouns: who may ask, what a process writes of itself, and what
	// it scrapes.
	"internal/admission":    {"internal/objstore", "internal/remotewrite", "internal/replica", "internal/telemetry", "internal/tenant"},
	"internal/appender":     {"internal/remotewrite", "internal/segment"},
	"internal/promconfig":   {"internal/ruletemplate"},
	"internal/ruler":        {"internal/expression", "internal/memory", "internal/rulestore", "internal/ruletemplate", "internal/settings", "internal/telemetry", "internal/tenant"},
	"internal/notify":       {"internal/rulestate", "internal/secret", "internal/tenant"},
	"internal/rulefn":       {"internal/appender", "internal/expression", "internal/key", "internal/notify", "internal/objstore", "internal/queue", "internal/ruleeval", "internal/rulestate", "internal/rulestore", "internal/ruletemplate", "internal/settings", "internal/tenant"},
	"internal/rulestate":    {"internal/checksum", "internal/key", "internal/objstore"},
	"internal/rulestore":    {"internal/checksum", "internal/key", "internal/objstore"},
	"internal/ruletemplate": {"internal/expression", "internal/settings", "internal/telemetry"},
	"internal/listen":       {"internal/memory", "internal/panics", "internal/remotewrite"},
	"internal/spool":        {"internal/appender", "internal/remotewrite"},
	"internal/auth":         {"internal/secret", "internal/tenant"},
	"internal/cost":         {},
	"web":                   {},
	"internal/lambda":       {"internal/settings"},
	"internal/flightsql":    {"internal/memory"},
	"internal/loopback":     {},
	"internal/memory":       {},
	"internal/panics":       {},
	"internal/secret":       {},
	"internal/ruleeval":     {"internal/appender", "internal/ruletemplate"},
	"internal/ruletest":     {"internal/ruletemplate"},
	"internal/selfwrite":    {"internal/loopback", "internal/secret", "internal/settings", "internal/tenant"},

	// Verbs.
	"internal/compact": {
		"internal/block", "internal/catalog", "internal/compact/blockio", "internal/compact/jobmessage", "internal/compact/merge", "internal/compact/plan", "internal/key", "internal/memory", "internal/objstore", "internal/panics", "internal/parquetfile", "internal/queue", "internal/recent", "internal/recent/head", "internal/segment", "internal/series", "internal/settings",
	},
	"internal/compact/bulk": {
		"internal/block", "internal/catalog", "internal/compact/blockio", "internal/compact/merge", "internal/key", "internal/objstore", "internal/series",
	},
	"internal/compact/blockio":    {"internal/block", "internal/key", "internal/objstore", "internal/rollup", "internal/segment", "internal/series"},
	"internal/compact/jobmessage": {"internal/catalog", "internal/compact/plan", "internal/key", "internal/queue", "internal/tenant"},
	"internal/compact/merge":      {"internal/block", "internal/catalog", "internal/live", "internal/recent", "internal/recent/head", "internal/segment", "internal/series"},
	"internal/compact/plan":       {"internal/catalog", "internal/key", "internal/objstore"},
	"internal/ingest": {
		"internal/admission", "internal/csvlines", "internal/datadog", "internal/ingest/body", "internal/ingest/group", "internal/ingest/inflight", "internal/ingest/quota", "internal/jsonlines", "internal/key", "internal/lineprotocol", "internal/memory", "internal/message", "internal/objstore", "internal/opentsdb", "internal/otlp", "internal/panics", "internal/promtext", "internal/push", "internal/queue", "internal/recent", "internal/remotewrite", "internal/segment", "internal/series", "internal/settings", "internal/spare", "internal/tenant",
	},
	"internal/ingest/body":     {"internal/ingest/inflight"},
	"internal/ingest/group":    {"internal/ingest/inflight", "internal/key", "internal/remotewrite", "internal/segment", "internal/series"},
	"internal/ingest/inflight": {"internal/memory"},
	"internal/ingest/quota":    {"internal/admission", "internal/memory", "internal/remotewrite", "internal/series"},
	"internal/publish":         {"internal/block", "internal/catalog", "internal/iceberg", "internal/key", "internal/objstore", "internal/segment"},
	"internal/query": {
		"internal/catalog", "internal/expression", "internal/key", "internal/objstore", "internal/query/duck", "internal/query/duck/promsql", "internal/query/buckets", "internal/query/engine", "internal/query/exec", "internal/query/explain", "internal/query/index", "internal/query/inventory", "internal/query/lookup", "internal/query/metrics", "internal/query/price", "internal/query/querier", "internal/query/request", "internal/query/rollups", "internal/query/samples", "internal/query/snapshot", "internal/query/source", "internal/query/sql", "internal/query/sql/encode", "internal/query/sql/statement", "internal/query/sql/views", "internal/query/usage", "internal/recent", "internal/replica", "internal/settings", "internal/tempdir", "internal/tenant",
	},
	"internal/query/buckets": {
		"internal/block", "internal/query/lookup", "internal/query/metrics", "internal/query/request",
		"internal/query/rollups", "internal/query/samples", "internal/query/source", "internal/rollup",
	},
	"internal/query/price": {"internal/cost", "internal/query/source"},
	"internal/query/rollups": {
		"internal/block", "internal/query/index", "internal/query/metrics", "internal/query/source", "internal/rollup",
	},
	"internal/query/admin": {
		"internal/catalog", "internal/expression", "internal/key", "internal/settings",
		"internal/telemetry", "internal/tenant", "internal/timeparam",
	},
	"internal/query/api": {
		"internal/expression", "internal/key", "internal/memory", "internal/query/api/answers", "internal/query/api/guard", "internal/query/api/lines", "internal/query/api/respond", "internal/query/api/weights", "internal/query/request", "internal/settings", "internal/telemetry", "internal/timeparam",
	},
	"internal/query/api/answers":    {"internal/panics"},
	"internal/query/api/lines":      {"internal/timeparam"},
	"internal/query/api/guard":      {"internal/expression", "internal/memory", "internal/query/api/respond", "internal/tenant"},
	"internal/query/api/respond":    {},
	"internal/query/api/weights":    {"internal/cost", "internal/key", "internal/query/api/respond", "internal/query/usage", "internal/timeparam"},
	"internal/query/inventory":      {"internal/block", "internal/catalog", "internal/cost", "internal/key"},
	"internal/query/duck":           {"internal/query/duck/guard"},
	"internal/query/duck/guard":     {"third_party/duckdb"},
	"internal/query/duck/arrowrows": {"third_party/duckdb"},
	"internal/query/duck/table":     {"third_party/duckdb"},
	"internal/query/duck/promsql": {
		"internal/memory", "internal/query/duck/promsql/agg", "internal/query/duck/promsql/base",
		"internal/query/duck/promsql/kernel", "internal/query/duck/promsql/rows",
		"internal/query/duck/promsql/vec", "internal/query/duck/promsql/windows",
	},
	"internal/query/duck/promsql/windows": {
		"internal/query/duck/promsql/base", "internal/query/duck/promsql/kernel", "internal/query/duck/promsql/vec", "third_party/duckdb",
	},
	"internal/query/duck/promsql/agg": {
		"internal/query/duck/promsql/base", "internal/query/duck/promsql/kernel",
		"internal/query/duck/promsql/vec",
	},
	"internal/query/duck/promsql/base":   {},
	"internal/query/duck/promsql/kernel": {"internal/query/duck/promsql/base"},
	"internal/query/duck/promsql/rows":   {"internal/query/duck/promsql/base", "third_party/duckdb"},
	"internal/query/duck/promsql/vec": {
		"internal/query/duck/promsql/base", "internal/query/duck/promsql/kernel", "third_party/duckdb",
	},
	"internal/query/engine": {
		"internal/catalog", "internal/expression", "internal/memory", "internal/query/exec", "internal/query/fetch",
		"internal/query/lru", "internal/query/plan", "internal/query/request", "internal/query/samples",
		"internal/query/snapshot", "internal/query/usage", "internal/telemetry", "internal/tenant",
	},
	"internal/query/exec": {
		"internal/catalog", "internal/memory", "internal/panics", "internal/query/duck",
		"internal/query/duck/promsql", "internal/query/lookup", "internal/query/metrics",
		"internal/query/plan", "internal/query/plan/vector", "internal/query/request", "internal/query/samples",
		"internal/query/snapshot", "internal/query/source", "internal/spare", "internal/tenant",
	},
	"internal/query/explain": {
		"internal/block", "internal/query/duck", "internal/query/engine",
		"internal/query/exec", "internal/query/plan", "internal/query/plan/vector", "internal/query/price", "internal/query/request", "internal/query/source", "internal/query/translate",
	},
	"internal/query/fetch": {"internal/objstore", "internal/panics", "internal/parquetfile", "internal/query/lru"},
	"internal/query/index": {
		"internal/block", "internal/parquetfile", "internal/query/fetch", "internal/query/lru", "internal/recent",
		"internal/segment", "internal/series",
	},
	"internal/query/lookup": {
		"internal/block", "internal/catalog", "internal/live", "internal/query/index",
		"internal/query/lru", "internal/query/metrics", "internal/query/request", "internal/query/source", "internal/recent", "internal/recent/head", "internal/replica",
		"internal/series", "internal/temporality",
	},
	"internal/query/lru":           {},
	"internal/query/metrics":       {"internal/memory", "internal/query/request"},
	"internal/query/plan":          {"internal/query/duck/promsql", "internal/query/plan/vector", "internal/temporality"},
	"internal/query/plan/plantest": {},
	"internal/query/plan/vector":   {"internal/query/duck/promsql"},
	"internal/query/querier": {
		"internal/block", "internal/catalog", "internal/key", "internal/query/index",
		"internal/query/lookup", "internal/query/metrics", "internal/query/request",
		"internal/query/samples", "internal/query/snapshot", "internal/query/source",
		"internal/segment", "internal/temporality", "internal/tenant",
	},
	"internal/query/request": {"internal/catalog", "internal/memory"},
	"internal/query/samples": {
		"internal/block", "internal/live", "internal/memory", "internal/panics", "internal/query/duck/promsql",
		"internal/query/index", "internal/query/lookup", "internal/query/metrics",
		"internal/query/plan", "internal/query/request", "internal/query/rollups", "internal/query/source", "internal/recent", "internal/replica", "internal/rollup",
		"internal/segment", "internal/temporality",
	},
	"internal/query/snapshot": {
		"internal/catalog", "internal/key", "internal/objstore", "internal/panics", "internal/query/fetch",
		"internal/query/index", "internal/query/lru", "internal/query/metrics", "internal/query/request",
		"internal/query/source", "internal/replica", "internal/tenant",
	},
	"internal/query/sql": {
		"internal/catalog", "internal/expression", "internal/key", "internal/memory", "internal/tempdir", "internal/timeparam", "internal/objstore", "internal/query/duck", "internal/query/duck/arrowrows", "internal/query/duck/guard", "internal/query/duck/promsql", "internal/query/duck/table", "internal/query/engine", "internal/query/price", "internal/query/request", "internal/query/snapshot", "internal/query/source", "internal/query/sql/encode", "internal/query/sql/pushdown", "internal/query/sql/statement", "internal/query/sql/views", "internal/tenant",
	},
	"internal/query/sql/encode":    {},
	"internal/query/sql/pushdown":  {"internal/expression"},
	"internal/query/sql/statement": {},
	"internal/query/translate":     {"internal/query/duck"},
	"internal/query/sql/views": {
		"internal/catalog", "internal/query/duck/promsql", "internal/query/duck/table",
		"internal/query/buckets", "internal/query/lookup", "internal/query/metrics", "internal/query/price", "internal/query/request",
		"internal/query/samples", "internal/query/source", "internal/query/sql/pushdown", "internal/rollup",
	},
	"internal/query/source": {
		"internal/block", "internal/catalog", "internal/checksum", "internal/key", "internal/objstore", "internal/panics", "internal/parquetfile", "internal/query/duck", "internal/query/fetch", "internal/query/index", "internal/query/metrics", "internal/recent", "internal/rollup", "internal/segment", "internal/tempdir",
	},
	"internal/query/usage": {"internal/checksum", "internal/expression", "internal/key", "internal/objstore", "internal/panics"},

	// Nouns.
	"internal/block":               {"internal/checksum", "internal/jsontext", "internal/key", "internal/parquetfile", "internal/parquetfile/delta", "internal/segment", "internal/series"},
	"internal/catalog":             {"internal/checksum", "internal/key", "internal/objstore"},
	"internal/checksum":            {},
	"internal/expression":          {"internal/settings"},
	"internal/key":                 {},
	"internal/live":                {"internal/catalog"},
	"internal/message":             {"internal/queue", "internal/remotewrite", "internal/segment", "internal/series", "internal/tenant"},
	"internal/objstore":            {},
	"internal/objstore/filestore":  {"internal/objstore"},
	"internal/objstore/instrument": {"internal/key", "internal/objstore", "internal/telemetry"},
	"internal/objstore/probe":      {"internal/objstore"},
	"internal/objstore/rooted":     {"internal/checksum", "internal/key", "internal/objstore", "internal/objstore/probe"},
	"internal/objstore/s3store":    {"internal/checksum", "internal/objstore"},
	"internal/objstore/storeurl":   {"internal/objstore", "internal/objstore/filestore", "internal/objstore/s3store"},
	"internal/parquetfile":         {"internal/checksum", "internal/parquetfile/delta"},
	"internal/parquetfile/delta":   {},
	"internal/promblock":           {"internal/live", "internal/segment", "internal/series"},
	"internal/queue":               {},
	"internal/queue/sqsqueue":      {"internal/queue", "internal/telemetry"},
	"internal/lineprotocol":        {"internal/key", "internal/remotewrite", "internal/series"},
	"internal/csvlines":            {"internal/remotewrite", "internal/series", "internal/timeparam"},
	"internal/datadog":             {"internal/jsontext", "internal/remotewrite", "internal/segment", "internal/series", "internal/temporality"},
	"internal/graphite":            {"internal/pickle", "internal/remotewrite", "internal/series"},
	"internal/pickle":              {},
	"internal/replica":             {},
	"internal/statsd":              {"internal/memory", "internal/remotewrite", "internal/segment", "internal/series"},
	"internal/jsonlines":           {"internal/jsontext", "internal/remotewrite", "internal/series"},
	"internal/jsontext":            {},
	"internal/iceberg":             {},
	"internal/opentsdb":            {"internal/jsontext", "internal/remotewrite", "internal/series"},
	"internal/otlp":                {"internal/key", "internal/remotewrite", "internal/segment", "internal/series", "internal/temporality"},
	"internal/promtext":            {"internal/remotewrite", "internal/segment", "internal/series"},
	"internal/push":                {"internal/checksum", "internal/remotewrite", "internal/segment", "internal/series"},
	"internal/recent":              {"internal/recent/head", "internal/segment", "internal/series", "internal/spare"},
	"internal/recent/head":         {"internal/series"},
	"internal/remotewrite":         {"internal/key", "internal/segment", "internal/series", "internal/settings", "internal/spare"},
	"internal/rollup":              {"internal/block", "internal/checksum", "internal/parquetfile", "internal/parquetfile/delta"},
	"internal/segment":             {"internal/checksum", "internal/parquetfile", "internal/series"},
	"internal/series":              {},
	"internal/settings":            {},
	"internal/spare":               {},
	"internal/telemetry":           {},
	"internal/tenant":              {},
	"internal/timeparam":           {},

	// Headers of others.
	"third_party/duckdb": {},

	// Tests of the whole and of the house.
	"internal/tempdir":     {},
	"internal/temporality": {},
	"internal/archtest":    {},
	"tests/bench": {
		"tests/bench/all", "tests/bench/cost", "tests/bench/dashboard", "tests/bench/growth", "tests/bench/imports", "tests/bench/ingest", "tests/bench/load", "tests/bench/query", "tests/bench/rules", "tests/bench/small", "tests/bench/storage",
	},
	"tests/bench/all": {
		"tests/bench/dashboard", "tests/bench/disk", "tests/bench/gateway", "tests/bench/growth", "tests/bench/ingest", "tests/bench/query", "tests/bench/server", "tests/bench/small", "tests/bench/storage", "tests/bench/table", "tests/bench/wire",
	},
	"tests/bench/answer":  {},
	"tests/bench/capture": {},
	"tests/bench/cost": {
		"internal/compact", "internal/compact/plan", "internal/ingest", "internal/objstore", "internal/objstore/filestore", "internal/objstore/instrument", "internal/queue",
		"tests/bench/capture", "tests/bench/fleet", "tests/bench/proc", "tests/bench/wire",
	},
	"tests/bench/dashboard": {
		"tests/bench/capture", "tests/bench/disk", "tests/bench/fleet", "tests/bench/gateway", "tests/bench/load", "tests/bench/peer", "tests/bench/server", "tests/bench/table",
	},
	"tests/bench/disk":    {"internal/catalog", "internal/objstore/filestore", "internal/tenant", "tests/bench/proc", "tests/bench/table"},
	"tests/bench/fleet":   {"tests/bench/capture"},
	"tests/bench/gateway": {"tests/bench/server"},
	"tests/bench/growth": {
		"tests/bench/capture", "tests/bench/fleet", "tests/bench/load", "tests/bench/peer", "tests/bench/proc", "tests/bench/server", "tests/bench/table",
	},
	"tests/bench/imports": {
		"internal/catalog", "internal/compact/blockio", "tests/support/compacttest", "internal/objstore", "internal/objstore/filestore", "tests/support/promblocktest", "internal/query", "internal/tenant",
		"tests/bench/capture", "tests/bench/fleet", "tests/bench/proc", "tests/bench/table",
	},
	"tests/bench/ingest": {
		"tests/bench/capture", "tests/bench/disk", "tests/bench/fleet", "tests/bench/load", "tests/bench/peer", "tests/bench/proc", "tests/bench/server", "tests/bench/table", "tests/bench/wire",
	},
	"tests/bench/load": {"tests/bench/capture", "tests/bench/fleet", "tests/bench/proc", "tests/bench/wire"},
	"tests/bench/peer": {},
	"tests/bench/proc": {},
	"tests/bench/query": {
		"tests/bench/answer", "tests/bench/capture", "tests/bench/dashboard", "tests/bench/disk", "tests/bench/fleet", "tests/bench/gateway", "tests/bench/load", "tests/bench/peer", "tests/bench/proc", "tests/bench/server", "tests/bench/table",
	},
	"tests/bench/rules": {
		"tests/bench/answer", "tests/bench/capture", "tests/bench/fleet", "tests/bench/peer", "tests/bench/proc", "tests/bench/server", "tests/bench/table",
	},
	"tests/bench/server": {"tests/support/freeaddr", "tests/bench/wire"},
	"tests/bench/small": {
		"tests/bench/capture", "tests/bench/fleet", "tests/bench/load", "tests/bench/proc", "tests/bench/server", "tests/bench/table",
	},
	"tests/bench/storage": {
		"internal/block",
		"tests/bench/capture", "tests/bench/disk", "tests/bench/fleet", "tests/bench/peer", "tests/bench/proc", "tests/bench/server", "tests/bench/table",
	},
	"tests/bench/table":             {},
	"tests/bench/wire":              {},
	"tests/faults":                  {},
	"tests/functions":               {},
	"tests/fuzzpromql":              {},
	"tests/lifetime":                {},
	"tests/model":                   {},
	"tests/order":                   {},
	"tests/resource":                {},
	"tests/senders":                 {},
	"tests/sim":                     {},
	"tests/support/checksumtest":    {},
	"tests/support/compacttest":     {"internal/block", "internal/catalog", "internal/compact/blockio", "internal/key", "internal/objstore", "internal/segment", "internal/series", "tests/support/segmenttest"},
	"tests/support/emulator":        {},
	"tests/support/freeaddr":        {},
	"tests/support/lambdatest":      {"tests/support/emulator"},
	"tests/support/livetest":        {},
	"tests/support/memqueue":        {"internal/queue"},
	"tests/support/memstore":        {"internal/objstore"},
	"tests/support/plantest":        {},
	"tests/support/promblocktest":   {},
	"tests/support/schematest":      {},
	"tests/support/recenttest":      {"internal/recent", "internal/segment", "internal/series"},
	"tests/support/remotewritetest": {"internal/remotewrite", "internal/segment", "internal/series"},
	"tests/support/s3test":          {"tests/support/freeaddr"},
	"tests/support/secrettest":      {},
	"tests/support/segmenttest":     {"internal/segment", "internal/series"},
	"tests/support/sqstest":         {"internal/queue", "tests/support/memqueue"},
	"tests/support/storetest":       {"internal/objstore"},
}
