package cost

import (
	"bytes"
	_ "embed" // of the figures
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed measured.json
var measuredJSON []byte

// Figure is a constant of the model with its source.
type Figure struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	How   string  `json:"how"`  // how it was measured, or why it has this value
	When  string  `json:"when"` // date of the measurement, YYYY-MM-DD; "" if it was not measured
}

// Measured holds the resources that samples, requests and queries use. CPU figures are seconds of
// one core of the machine of docs/benchmarks.md.
type Measured struct {
	WireBytes    Figure `json:"wire_bytes_per_sample"`   // request body
	QueueBytes   Figure `json:"queue_bytes_per_sample"`  // message text
	MessageBytes Figure `json:"queue_bytes_per_message"` // message text without samples
	// from body to segment
	DirectCPU   Figure `json:"direct_cpu_per_million"`
	SegmentCPU  Figure `json:"segment_cpu"`              // per segment, without its samples
	ValidateCPU Figure `json:"validate_cpu_per_million"` // from body to messages
	FlushCPU    Figure `json:"flush_cpu_per_million"`    // from messages to segments
	// per invocation and its event, without the work
	InvokeCPU Figure `json:"invocation_cpu"`
	// per MB of an event's payload
	EventCPU     Figure `json:"event_cpu_per_mb"`
	RequestCPU   Figure `json:"aws_request_cpu"`    // per request to S3 or SQS
	S3Seconds    Figure `json:"s3_seconds"`         // duration of a request to S3
	QueueSeconds Figure `json:"sqs_seconds"`        // duration of a request to SQS
	Pollers      Figure `json:"queue_pollers"`      // per event source
	PollSeconds  Figure `json:"queue_poll_seconds"` // duration of an empty receive
	KMSSeconds   Figure `json:"queue_key_seconds"`  // for which a queue uses a data key of KMS

	BlockBytes Figure `json:"block_bytes_per_sample"`
	// labels of a series in a day's block
	SeriesBytes Figure `json:"block_bytes_per_series_day"`
	RollupBytes Figure `json:"rollup_bytes_per_series_day"`
	// bytes that are not yet in the day's block, including sources that await deletion
	UncompactedBytes Figure `json:"uncompacted_bytes_per_sample"`
	UncompactedDays  Figure `json:"uncompacted_days"` // how long samples are not in the day's block

	// per million samples, for all levels together
	CompactCPU Figure `json:"compact_cpu_per_million"`
	// per segment, without its samples
	CompactSegmentCPU Figure `json:"compact_cpu_per_segment"`
	CompactSegmentGet Figure `json:"compact_gets_per_segment"` // includes parts
	CompactJobGets    Figure `json:"compact_gets_per_job"`     // without its sources
	// files of a block and the manifest
	CompactJobPuts Figure `json:"compact_puts_per_job"`
	// of the window and of the manifest's copies
	CompactJobLists Figure `json:"compact_lists_per_job"`
	CompactJobHeads Figure `json:"compact_heads_per_job"`      // reads of the store's clock
	JobsOfRanges    Figure `json:"compact_range_jobs_per_day"` // per tenant: 2h, 12h and 24h
	// segments per part, if there are few segments
	PartSegments    Figure `json:"compact_segments_per_part"`
	PartSources     Figure `json:"compact_max_segments_per_part"` // if there are many segments
	TickTenants     Figure `json:"plan_lists_per_tick"`           // lists of the tenants
	TickLists       Figure `json:"plan_lists_per_tick_and_tenant"`
	TickGets        Figure `json:"plan_gets_per_tick_and_tenant"`
	TickHeads       Figure `json:"plan_heads_per_tick"` // reads of the store's clock
	TickSeconds     Figure `json:"plan_seconds_per_tick"`
	PlanConcurrency Figure `json:"plan_tenants_at_once"`

	QueryCPU      Figure `json:"query_cpu_per_million"` // per million samples read
	QueryFixedCPU Figure `json:"query_cpu"`             // per query, without samples
	QueryBytes    Figure `json:"query_bytes_per_sample"`
	QueryGets     Figure `json:"query_gets"` // per query
	QueryLists    Figure `json:"query_lists"`
	QueryGetBytes Figure `json:"query_bytes_per_get"`
	QueryRounds   Figure `json:"query_rounds"` // sequential requests

	RuleCPU      Figure `json:"rule_cpu"`       // per evaluation of a rule
	RulesAtOnce  Figure `json:"rules_at_once"`  // per invocation
	StatesAtOnce Figure `json:"states_at_once"` // requests of an invocation

	// Lambda's own lines, if enabled
	SystemLogBytes Figure `json:"log_bytes_per_invocation"`
	TickLogBytes   Figure `json:"log_bytes_per_tick"`
	JobLogBytes    Figure `json:"log_bytes_per_job"`
	LogDays        Figure `json:"log_days"`
	Alarms         Figure `json:"alarms"`
	Metrics        Figure `json:"metrics"`           // CloudWatch metrics
	Instances      Figure `json:"managed_instances"` // minimum
	InstanceCores  Figure `json:"managed_instance_cores"`
	AMPBytes       Figure `json:"amp_bytes_per_sample"`
}

// Figures returns the figures of measured.json, in which none is missing.
var Figures = sync.OnceValue(func() *Measured {
	var m Measured
	dec := json.NewDecoder(bytes.NewReader(measuredJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		panic(fmt.Sprintf("read the measured figures of the program: %v", err)) // a test reads them
	}
	return &m
})
