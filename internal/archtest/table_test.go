package archtest

// Kinds of packages. A noun is a format or a value and imports no verb; a verb is a stage and imports no other verb; only the
// composition (internal/app, cmd, the functions) and tests put verbs together.
var (
	nouns    = []string{"internal/block", "internal/catalog", "internal/key", "internal/objstore", "internal/segment", "internal/series", "internal/telemetry", "internal/tenant"}
	verbs    = []string{"internal/compact", "internal/ingest", "internal/query"}
	composes = []string{"cmd", "compact-fn", "ingest-fn", "internal/app", "query-fn", "tests"}
)

// allowed is every package of the module with the packages of the module that its code (tests aside) may import. It is
// exact: a new package, a new import and an import that is gone all want a change here, which a reviewer sees.
var allowed = map[string][]string{
	// Programs.
	"cmd/promlake": {
		"internal/app", "internal/app/flags", "internal/app/ingestapp", "internal/app/process", "internal/app/queryapp",
		"internal/demo", "internal/telemetry", "internal/tenant",
	},
	"ingest-fn": {"internal/app/flags", "internal/app/ingestapp", "internal/app/process", "internal/telemetry"},
	"query-fn":  {"internal/app/flags", "internal/app/process", "internal/app/queryapp", "internal/telemetry"},

	// Composition.
	"internal/app": {
		"internal/app/ingestapp", "internal/app/process", "internal/app/queryapp",
		"internal/demo", "internal/ingest", "internal/telemetry",
	},
	"internal/app/flags":     {},
	"internal/app/ingestapp": {"internal/app/process", "internal/ingest"},
	"internal/app/process":   {"internal/objstore", "internal/objstore/instrument", "internal/objstore/storeurl", "internal/telemetry"},
	"internal/app/queryapp":  {"internal/app/flags", "internal/app/process", "internal/query", "internal/query/api", "internal/telemetry"},
	"internal/demo":          {"internal/demo/node"},
	"internal/demo/node":     {},

	// Verbs.
	"internal/ingest": {"internal/key", "internal/objstore", "internal/segment", "internal/series", "internal/tenant"},
	"internal/query": {
		"internal/catalog", "internal/key", "internal/objstore", "internal/query/duck", "internal/segment", "internal/tenant",
	},
	"internal/query/api":  {"internal/telemetry", "internal/tenant"},
	"internal/query/duck": {},

	// Nouns.
	"internal/catalog":             {"internal/key", "internal/objstore"},
	"internal/key":                 {},
	"internal/objstore":            {},
	"internal/objstore/filestore":  {"internal/objstore"},
	"internal/objstore/instrument": {"internal/objstore"},
	"internal/objstore/memstore":   {"internal/objstore"},
	"internal/objstore/s3store":    {"internal/objstore"},
	"internal/objstore/s3test":     {},
	"internal/objstore/storetest":  {"internal/objstore"},
	"internal/objstore/storeurl":   {"internal/objstore", "internal/objstore/filestore", "internal/objstore/s3store"},
	"internal/segment":             {"internal/series"},
	"internal/segment/segmenttest": {"internal/segment", "internal/series"},
	"internal/series":              {},
	"internal/telemetry":           {},
	"internal/tenant":              {},

	// Tests of the whole and of the house.
	"internal/archtest":   {},
	"tests/bench":         {},
	"tests/bench/capture": {},
	"tests/bench/cmd/promlake-load": {
		"tests/bench", "tests/bench/capture", "tests/bench/fleet", "tests/bench/load", "tests/bench/wire",
	},
	"tests/bench/fleet": {"tests/bench/capture"},
	"tests/bench/load":  {"tests/bench/fleet", "tests/bench/proc", "tests/bench/wire"},
	"tests/bench/proc":  {},
	"tests/bench/run": {
		"tests/bench", "tests/bench/capture", "tests/bench/fleet", "tests/bench/load", "tests/bench/proc",
		"tests/bench/server", "tests/bench/wire",
	},
	"tests/bench/server": {},
	"tests/bench/wire":   {},
	"tests/senders":      {},
}
