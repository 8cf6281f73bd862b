package settings

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// Env names the environment variable of a flag.
func Env(flag string) string {
	return "PROMLAKE_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// StackParameters has the flags that each parameter of the AWS stack sets (infra/serverless.yml),
// or that follow from the memory that it sets. A parameter begins with the name of its function.
var StackParameters = map[string][]string{
	"ingest-memory":     {"memory-limit"},
	"query-divide":      {"query.divide-invocations", "query.workers"},
	"query-max-dollars": {"query.max-dollars"},
	"query-memory":      ofMemory,
	"query-timeout":     {"query.timeout"},
	"query-tmp":         {"query.cache-bytes"},
	"rules-memory":      ofMemory,
	"rules-timeout":     {"query.timeout"},
}

var ofMemory = []string{
	"memory-limit", "query.footer-cache-bytes", "query.index-cache-bytes", "query.max-memory", "query.max-samples",
	"query.max-subquery-steps", "query.memory-limit", "query.samples-per-second", "query.threads", "storage.remote.read-sample-limit",
}

var flagInText = regexp.MustCompile(`--[a-z][a-z0-9.-]*[a-z0-9]`)

// ForOperator returns the text of an error with the names of flags that its reader can set: the
// flags, or in a function of the AWS stack its parameters. For a limit without a parameter it says
// that the stack fixes it, and names the function's variable.
func ForOperator(text string) string {
	name := os.Getenv("AWS_LAMBDA_FUNCTION_NAME") // promlake-STAGE-FUNCTION
	if name == "" {
		return text
	}
	function := name[strings.LastIndexByte(name, '-')+1:]
	return flagInText.ReplaceAllStringFunc(text, func(flag string) string {
		flag = flag[len("--"):]
		for parameter, flags := range StackParameters {
			if strings.HasPrefix(parameter, function+"-") && slices.Contains(flags, flag) {
				return "the stack's parameter " + parameter
			}
		}
		return Env(flag) + ", which the stack fixes"
	})
}
