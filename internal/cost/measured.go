package cost

import (
	"bytes"
	_ "embed" // of the figures
	"encoding/json"
	"fmt"
	"reflect"
)

//go:embed measured.json
var measuredJSON []byte

// Figure is a constant of the model, with where it comes from.
type Figure struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	How   string  `json:"how"`  // measured: by what; else why this value
	When  string  `json:"when"` // date of the measurement, YYYY-MM-DD; "" for what was not measured
}

// Measured is what samples, requests and queries take. CPU is seconds of one core; figures of
// processor time are from the machine of docs/benchmarks.md.
type Measured struct {
	WireBytes    Figure `json:"wire_bytes_per_sample"`   // of a request's body
	QueueBytes   Figure `json:"queue_bytes_per_sample"`  // of a message's text
	MessageBytes Figure `json:"queue_bytes_per_message"` // beside its samples
	// of a million samples, from body to segment
	DirectCPU   Figure `json:"direct_cpu_per_million"`
	SegmentCPU  Figure `json:"segment_cpu"`              // of a segment, beside its samples
	ValidateCPU Figure `json:"validate_cpu_per_million"` // from body to messages
	FlushCPU    Figure `json:"flush_cpu_per_million"`    // from messages to segments
	// of an invocation and its event, whatever it does
	InvokeCPU Figure `json:"invocation_cpu"`
	// of a million bytes of an event's payload
	EventCPU     Figure `json:"event_cpu_per_mb"`
	RequestCPU   Figure `json:"aws_request_cpu"`    // of a request to S3 or SQS
	S3Seconds    Figure `json:"s3_seconds"`         // until S3 has answered a request
	QueueSeconds Figure `json:"sqs_seconds"`        // until SQS has answered a request
	Pollers      Figure `json:"queue_pollers"`      // of an event source
	PollSeconds  Figure `json:"queue_poll_seconds"` // of one empty receive

	BlockBytes Figure `json:"block_bytes_per_sample"`
	// of a series' labels in a day's block
	SeriesBytes Figure `json:"block_bytes_per_series_day"`
	RollupBytes Figure `json:"rollup_bytes_per_series_day"`
	// of what is not yet in the day's block, sources that wait for deletion included
	UncompactedBytes Figure `json:"uncompacted_bytes_per_sample"`
	UncompactedDays  Figure `json:"uncompacted_days"` // for which samples are so

	// of a million samples, all levels together
	CompactCPU Figure `json:"compact_cpu_per_million"`
	// of a segment, beside its samples
	CompactSegmentCPU Figure `json:"compact_cpu_per_segment"`
	CompactSegmentGet Figure `json:"compact_gets_per_segment"` // of parts too
	CompactJobGets    Figure `json:"compact_gets_per_job"`     // beside its sources
	// of a block's files and the manifest
	CompactJobPuts Figure `json:"compact_puts_per_job"`
	JobsOfRanges   Figure `json:"compact_range_jobs_per_day"` // of a tenant: 2h, 12h and 24h
	// that become one part, if they are few
	PartSegments    Figure `json:"compact_segments_per_part"`
	PartSources     Figure `json:"compact_max_segments_per_part"` // if they are many
	TickTenants     Figure `json:"plan_lists_per_tick"`           // of the tenants
	TickLists       Figure `json:"plan_lists_per_tick_and_tenant"`
	TickGets        Figure `json:"plan_gets_per_tick_and_tenant"`
	TickSeconds     Figure `json:"plan_seconds_per_tick"`
	PlanConcurrency Figure `json:"plan_tenants_at_once"`

	QueryCPU      Figure `json:"query_cpu_per_million"` // of a million samples that are read
	QueryFixedCPU Figure `json:"query_cpu"`             // of any query
	QueryBytes    Figure `json:"query_bytes_per_sample"`
	QueryGets     Figure `json:"query_gets"` // of any query
	QueryLists    Figure `json:"query_lists"`
	QueryGetBytes Figure `json:"query_bytes_per_get"`
	QueryRounds   Figure `json:"query_rounds"` // requests that wait for one another

	// of Lambda's own lines, if it writes them
	SystemLogBytes Figure `json:"log_bytes_per_invocation"`
	TickLogBytes   Figure `json:"log_bytes_per_tick"`
	JobLogBytes    Figure `json:"log_bytes_per_job"`
	LogDays        Figure `json:"log_days"`
	Alarms         Figure `json:"alarms"`
	Metrics        Figure `json:"metrics"`           // of CloudWatch
	Instances      Figure `json:"managed_instances"` // at least
	InstanceCores  Figure `json:"managed_instance_cores"`
	AMPBytes       Figure `json:"amp_bytes_per_sample"`
}

// ReadMeasured returns the figures of measured.json.
func ReadMeasured() (*Measured, error) {
	var m Measured
	dec := json.NewDecoder(bytes.NewReader(measuredJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("read measured figures: %w", err)
	}
	v := reflect.ValueOf(m)
	for i := range v.NumField() {
		if f := v.Field(i).Interface().(Figure); f.How == "" || f.Unit == "" {
			return nil, fmt.Errorf("read measured figures: %s is missing, or has no unit or source", v.Type().Field(i).Tag.Get("json"))
		}
	}
	return &m, nil
}
