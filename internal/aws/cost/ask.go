package cost

import "math"

// queries adds the cost of queries. Every query counts as cold: nothing of the store is cached.
func (w *sheet) queries() {
	n := w.QueriesPerDay * days
	size := w.SamplesPerQuery * w.m.QueryBytes.Value
	gets := w.m.QueryGets.Value + math.Ceil(size/w.m.QueryGetBytes.Value)
	requests := gets + w.m.QueryLists.Value
	k := work{
		cpu:  w.m.QueryFixedCPU.Value + w.SamplesPerQuery*w.m.QueryCPU.Value/1e6 + requests*w.m.RequestCPU.Value,
		wait: w.m.QueryRounds.Value * w.m.S3Seconds.Value,
	}
	w.add(Query, "requests", n*math.Ceil(max(1, w.BytesPerAnswer)/httpAPIBytes), HTTPAPIRequest, "queries × 512 KiB units of an answer")
	w.function(Query, n, k, w.Memory.Query, "queries")
	w.add(Query, "GET", n*gets, S3Get, "queries × (manifests, meta.json, series tables, and 2 MiB pieces of samples)")
	w.add(Query, "LIST", n*w.m.QueryLists.Value, S3Put, "queries")
	w.add(Query, "answers", n*w.BytesPerAnswer/bytesOfGB, InternetOut, "queries × bytes of an answer, if they leave AWS")
}

// logs adds the log lines of ticks and jobs, Lambda's lines for all invocations if enabled, and the
// alarms. Successful requests and batches write no lines of their own.
func (w *sheet) logs() {
	all, own := 0.0, map[Component]float64{Plan: w.m.TickLogBytes.Value, Compact: w.m.JobLogBytes.Value}
	var lines float64 // bytes
	for i := range w.bill.Lines {
		if l := &w.bill.Lines[i]; l.Unit == LambdaRequest {
			all += l.Quantity
			lines += l.Quantity * own[l.Component]
		}
	}
	w.add(Logs, "lines", lines/bytesOfGB, LogsIngested, "ticks and compaction jobs × bytes of their line")
	if w.SystemLogs == "info" {
		w.add(Logs, "Lambda's lines", all*w.m.SystemLogBytes.Value/bytesOfGB, LogsIngested, "invocations × bytes of their start and report")
		lines += all * w.m.SystemLogBytes.Value
	}
	w.add(Logs, "kept", lines/bytesOfGB*w.m.LogDays.Value/days, LogsStored, "lines × days kept ÷ 30")
	w.add(Logs, "metrics", w.m.Metrics.Value, Metric, "as deployed")
	w.add(Logs, "alarms", w.m.Alarms.Value, Alarm, "as deployed")
}
