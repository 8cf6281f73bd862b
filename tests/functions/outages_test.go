package functions

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/secrettest"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// TestOutagesRing takes each dependency from each function, and names the alarm of the stack that
// sees it. tests/infra checks that the stack has these alarms.
func TestOutagesRing(t *testing.T) {
	sqs := sqstest.Start(t)
	secrettest.StartSSM(t) // without a parameter
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>"))
	}))
	defer s3.Close()
	var keys []string
	for _, name := range []string{"AWS_ENDPOINT_URL_SSM", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		keys = append(keys, name+"="+os.Getenv(name))
	}
	const (
		noTokens = "PROMLAKE_AUTH_TOKENS=ssm:/promlake/missing"
		direct   = "PROMLAKE_INGEST_MODE=direct"
		buffered = "PROMLAKE_INGEST_MODE=buffered"
	)
	noBucket, noQueue := "PROMLAKE_STORE=s3://missing?region=us-east-1&endpoint="+s3.URL, sqs.Add("missing", nil)
	write, query, tick := recorded(t, "http-api-write-v1"), recorded(t, "http-api-query"), recorded(t, "eventbridge-rule")
	writeAtURL, queryAtURL := recorded(t, "http-api-write-v1"), recorded(t, "function-url-query")
	writeAtURL["requestContext"].(map[string]any)["domainName"] = "x.lambda-url.eu-central-1.on.aws"
	for _, e := range []event{write, query, writeAtURL, queryAtURL} {
		e["headers"].(map[string]any)["authorization"] = "Bearer x"
	}

	jobs := start(t, direct) // a store that has something to compact
	require.Equal(t, 204, ask(t, jobs.ingest, write).Status)
	writes := memqueue.New(memqueue.Settings{})
	sender := start(t, append(keys, buffered, "PROMLAKE_INGEST_QUEUE_URL="+sqs.Add("write", writes))...)
	require.Equal(t, 204, ask(t, sender.ingest, write).Status)
	batch := message(t, "sqs-standard", writes.Messages()[0].Body)

	for _, tc := range []struct {
		what, program string
		event         event
		env           []string
		alarm         string
	}{
		{"the token parameter", "ingest-fn", write, []string{noTokens, direct}, "ApiFailuresAlarm"},
		{"the token parameter, at the URL", "ingest-fn", writeAtURL, []string{noTokens, direct}, "IngestUrlFailuresAlarm"},
		{"the write queue", "ingest-fn", write, []string{buffered, "PROMLAKE_INGEST_QUEUE_URL=" + noQueue}, "ApiFailuresAlarm"},
		{"the bucket of direct writes", "ingest-fn", write, []string{direct, noBucket}, "ApiFailuresAlarm"},
		{"the bucket of flush", "ingest-fn", batch, []string{direct, noBucket}, "WriteAgeAlarm"},
		{"the token parameter", "query-fn", query, []string{noTokens}, "ApiFailuresAlarm"},
		{"the token parameter, at the URL", "query-fn", queryAtURL, []string{noTokens}, "QueryUrlFailuresAlarm"},
		{"the bucket", "query-fn", query, []string{noBucket}, "ApiFailuresAlarm"},
		{"the bucket", "compact-fn", tick, []string{noBucket}, "PlanErrorsAlarm"},
		{"the job queue", "compact-fn", tick, []string{"PROMLAKE_STORE=file://" + jobs.store, "PROMLAKE_COMPACTOR_QUEUE_URL=" + noQueue}, "PlanErrorsAlarm"},
	} {
		t.Run(tc.program+" without "+tc.what, func(t *testing.T) {
			env := append([]string{"PROMLAKE_STORE=file://" + t.TempDir(), "PROMLAKE_COMPACTOR_SETTLE_DELAY=1ms", "PROMLAKE_COMPACTOR_LATE_DELAY=1ms"}, keys...)
			f := lambdatest.Start(t, emulator.Settings{Path: programs[tc.program], Name: tc.program, Env: append(env, tc.env...)})
			switch tc.alarm {
			case "PlanErrorsAlarm": // on failed invocations
				_, err := f.Invoke(t.Context(), tc.event.payload(t))
				require.ErrorAs(t, err, new(*emulator.FunctionError))
			case "WriteAgeAlarm": // on messages that stay on the queue
				b, err := f.Invoke(t.Context(), tc.event.payload(t))
				require.NoError(t, err)
				var kept struct{ BatchItemFailures []any }
				require.NoError(t, json.Unmarshal(b, &kept))
				require.Len(t, kept.BatchItemFailures, 1)
			default: // on the answers of an entrance
				require.GreaterOrEqual(t, ask(t, f, tc.event).Status, 500)
			}
		})
	}
}
